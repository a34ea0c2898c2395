# libperf as a target, or HAVE_LIBPERF off: then capture through perf is left out. In this order: the
# distribution's own package; an archive built here from kernel sources that are there already.
# Nothing is downloaded.
set(VCPUSCOPE_LIBPERF_SOURCE ${PROJECT_SOURCE_DIR}/.deps/libperf CACHE PATH
  "Kernel sources with tools/lib/perf, as deploy/fetch-libperf leaves them")

add_library(libperf INTERFACE)
find_path(LIBPERF_INCLUDE perf/evlist.h)
find_library(LIBPERF_LIBRARY perf)
find_library(LIBPERF_ARCHIVE libperf.a)
find_library(LIBAPI_ARCHIVE libapi.a)
set(libperf_found OFF)
if(LIBPERF_INCLUDE AND LIBPERF_ARCHIVE AND LIBAPI_ARCHIVE)
  set(libperf_found ON)
  target_include_directories(libperf SYSTEM INTERFACE ${LIBPERF_INCLUDE})
  target_link_libraries(libperf INTERFACE ${LIBPERF_ARCHIVE} ${LIBAPI_ARCHIVE})
elseif(LIBPERF_INCLUDE AND LIBPERF_LIBRARY AND NOT VCPUSCOPE_STATIC_AGENT)
  set(libperf_found ON)
  target_include_directories(libperf SYSTEM INTERFACE ${LIBPERF_INCLUDE})
  target_link_libraries(libperf INTERFACE ${LIBPERF_LIBRARY})
elseif(EXISTS ${VCPUSCOPE_LIBPERF_SOURCE}/tools/lib/perf/Makefile)
  set(libperf_found ON)
  set(prefix ${CMAKE_BINARY_DIR}/libperf)
  set(archives ${prefix}/lib/libperf.a ${prefix}/lib/libapi.a)
  add_custom_command(OUTPUT ${archives}
    COMMAND ${CMAKE_CURRENT_LIST_DIR}/build-libperf.sh ${VCPUSCOPE_LIBPERF_SOURCE}
      ${CMAKE_BINARY_DIR}/libperf-build ${prefix}
    DEPENDS ${CMAKE_CURRENT_LIST_DIR}/build-libperf.sh
    COMMENT "libperf, from ${VCPUSCOPE_LIBPERF_SOURCE}" VERBATIM)
  add_custom_target(libperf_build DEPENDS ${archives})
  add_dependencies(libperf libperf_build)
  file(MAKE_DIRECTORY ${prefix}/include)
  target_include_directories(libperf SYSTEM INTERFACE ${prefix}/include)
  target_link_libraries(libperf INTERFACE ${archives})
endif()
vs_part(LIBPERF "${libperf_found}" "no capture through perf, for kernels without BPF or BTF"
  "deploy/install-deps optional")
