# bpf_object(<target> <name> <source> [definitions...]): compiles a BPF program and turns it into a
# header, <name>.skel.h, that embeds it. Rebuilt when the source or any header it includes changes.
find_program(BPF_CLANG NAMES clang clang-19 clang-18 clang-17 clang-16 clang-15 clang-14 REQUIRED)
find_program(BPF_STRIP NAMES llvm-strip llvm-strip-19 llvm-strip-18 llvm-strip-17 llvm-strip-16
  llvm-strip-15 llvm-strip-14 REQUIRED)
find_program(BPFTOOL NAMES bpftool PATHS /usr/sbin /sbin REQUIRED)

execute_process(COMMAND ${BPF_CLANG} -dumpversion OUTPUT_VARIABLE bpf_clang_version
  OUTPUT_STRIP_TRAILING_WHITESPACE)
if(bpf_clang_version VERSION_LESS 14)
  message(FATAL_ERROR "${BPF_CLANG} is version ${bpf_clang_version}, the BPF programs need 14: "
    "install clang or set BPF_CLANG")
endif()

# The architecture whose kernel loads the programs, as libbpf's headers name it (bpf/arch/).
set(bpf_arch x86)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  set(bpf_arch arm64)
endif()

function(bpf_object target name source)
  set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}.bpf.o)
  set(skeleton ${CMAKE_CURRENT_BINARY_DIR}/${name}.skel.h)
  add_custom_command(OUTPUT ${skeleton}
    COMMAND ${BPF_CLANG} -g -O2 -Wall -Wextra -Wno-unused-parameter -Wno-sign-compare
      $<$<BOOL:${VCPUSCOPE_WERROR}>:-Werror>
      -target bpf -mcpu=v3 -D__TARGET_ARCH_${bpf_arch} ${ARGN} -I${PROJECT_SOURCE_DIR}
      -idirafter ${CMAKE_SYSROOT}/usr/include/${CMAKE_LIBRARY_ARCHITECTURE}
      -MD -MF ${object}.d -MT ${skeleton} -c ${source} -o ${object}
    COMMAND ${BPF_STRIP} -g ${object}
    COMMAND ${BPFTOOL} gen skeleton ${object} name ${name} > ${skeleton}.new
    COMMAND ${CMAKE_COMMAND} -E rename ${skeleton}.new ${skeleton}
    DEPENDS ${source} DEPFILE ${object}.d
    COMMENT "BPF ${name}" VERBATIM COMMAND_EXPAND_LISTS)
  target_sources(${target} PRIVATE ${skeleton})
endfunction()
