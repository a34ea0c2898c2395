# libperf as an imported target, built once from Debian's kernel sources (see get-libperf.sh).
set(libperf_prefix ${CMAKE_BINARY_DIR}/libperf)
set(libperf_archives ${libperf_prefix}/lib/libperf.a ${libperf_prefix}/lib/libapi.a)
add_custom_command(OUTPUT ${libperf_archives}
  COMMAND ${CMAKE_CURRENT_LIST_DIR}/get-libperf.sh ${CMAKE_BINARY_DIR}/libperf-build ${libperf_prefix}
    ${PROJECT_SOURCE_DIR}/build/libperf-build
  DEPENDS ${CMAKE_CURRENT_LIST_DIR}/get-libperf.sh
  COMMENT "libperf, from Debian's linux-source-6.1" VERBATIM)
add_custom_target(libperf_build DEPENDS ${libperf_archives})
file(MAKE_DIRECTORY ${libperf_prefix}/include)

add_library(libperf INTERFACE)
add_dependencies(libperf libperf_build)
target_include_directories(libperf SYSTEM INTERFACE ${libperf_prefix}/include)
target_link_libraries(libperf INTERFACE ${libperf_archives})
