# SPDX-License-Identifier: GPL-2.0-only
# Run by cpack on what it is about to pack: removes the compiler's name from the programs.
file(GLOB_RECURSE programs ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/*/usr/bin/*
  ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/*/usr/sbin/*
  ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/*/usr/libexec/vcpuscope/*)
foreach(program ${programs})
  execute_process(COMMAND ${CPACK_OBJCOPY} --remove-section=.comment ${program}
    COMMAND_ERROR_IS_FATAL ANY)
endforeach()
