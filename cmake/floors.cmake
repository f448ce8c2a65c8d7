# One static library a folder of src/; each links every library of the floors below it, so a link edge is a floor edge.
set(THRICE_FLOOR_0 base)
set(THRICE_FLOOR_1 ir artifact target)
set(THRICE_FLOOR_2 frontend analysis family backend hardware)
set(THRICE_FLOOR_3 transform plan codegen jit store release exec)
set(THRICE_FLOOR_4 measure runtime)
set(THRICE_FLOOR_5 tune library worker monitor)
set(THRICE_FLOOR_6 flow report)

add_library(thrice_options INTERFACE)
target_include_directories(thrice_options INTERFACE ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src)
target_link_libraries(thrice_options INTERFACE thrice_third_party)

set(below thrice_options)
foreach(floor RANGE 0 6)
  set(here)
  foreach(folder ${THRICE_FLOOR_${floor}})
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${folder}/*.cc)
    if(sources)
      add_library(thrice_${folder} STATIC ${sources})
      target_link_libraries(thrice_${folder} PUBLIC ${below})
      list(APPEND here thrice_${folder})
    endif()
  endforeach()
  list(PREPEND below ${here})
endforeach()
set(THRICE_ALL ${below})

if(TARGET thrice_frontend AND THRICE_ONNX_PROTO_SOURCES)
  target_link_libraries(thrice_frontend PUBLIC thrice_onnx_proto)
endif()
file(GLOB oracle_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/ir/evaluate*.cc)
# What looks at every element of a trial: inputs, comparison, poison, limits.
list(APPEND oracle_sources ${CMAKE_SOURCE_DIR}/src/ir/inputs.cc ${CMAKE_SOURCE_DIR}/src/ir/compare.cc ${CMAKE_SOURCE_DIR}/src/base/dtype.cc
  ${CMAKE_SOURCE_DIR}/src/ir/element_bound.cc ${CMAKE_SOURCE_DIR}/src/measure/judge.cc ${CMAKE_SOURCE_DIR}/src/measure/ordinary.cc ${CMAKE_SOURCE_DIR}/src/measure/arguments.cc)
if(NOT THRICE_SANITIZE)  # instrumented, -O3 only costs build time
  set_source_files_properties(${oracle_sources} PROPERTIES COMPILE_OPTIONS "$<$<CONFIG:Release>:-O3;-Wno-stringop-overflow>")  # GCC 12 misreads fmt at -O3
endif()
target_sources(thrice_tune PRIVATE ${THRICE_EMBEDDED_AGENT})
# The same bits on every machine, as vectors: no contraction, and a root that need not set errno.
set_source_files_properties(${CMAKE_SOURCE_DIR}/src/ir/normals.cc PROPERTIES COMPILE_OPTIONS "-ffp-contract=off;-fno-math-errno;-fno-trapping-math;$<$<CONFIG:Release>:-O3>")
# Agents do arithmetic between trials, bounded by CPU time a trial (docs/agent.md).
target_include_directories(thrice_tune SYSTEM PUBLIC ${EIGEN_INCLUDE})
file(GLOB_RECURSE tune_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/tune/*.cc)
set_source_files_properties(${tune_sources} PROPERTIES COMPILE_OPTIONS "$<$<CONFIG:Release>:-O2>" COMPILE_DEFINITIONS "EIGEN_DONT_PARALLELIZE;EIGEN_NO_DEBUG")
if(TARGET thrice_family)
  target_sources(thrice_family PRIVATE ${THRICE_EMBEDDED_KERNELS})
endif()

file(GLOB cli_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/cli/*.cc)
if(cli_sources)
  add_executable(thrice ${cli_sources})
  target_link_libraries(thrice PRIVATE ${THRICE_ALL})
  if(NOT THRICE_SANITIZE)
    # One executable that starts on any glibc 2.35: the C++ runtime travels inside (tools/check_portable.py).
    target_link_options(thrice PRIVATE -static-libstdc++ -static-libgcc)
  endif()
endif()

# libthrice.so: loads and runs releases. Links what a deployed process needs and nothing of the optimiser; every symbol but
# those of thrice.h stays inside, so that it lives beside any other C++ library of the process.
file(GLOB api_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/api/*.cc)
add_library(thrice_shared SHARED ${api_sources})
set_target_properties(thrice_shared PROPERTIES OUTPUT_NAME thrice SOVERSION 1 CXX_VISIBILITY_PRESET hidden
  LINK_DEPENDS ${CMAKE_SOURCE_DIR}/src/api/exports.map)
target_compile_definitions(thrice_shared PRIVATE THRICE_BUILD)
target_include_directories(thrice_shared PUBLIC ${CMAKE_SOURCE_DIR}/include PRIVATE ${CMAKE_SOURCE_DIR}/src)
target_link_libraries(thrice_shared PRIVATE thrice_runtime)
target_link_options(thrice_shared PRIVATE -Wl,--exclude-libs,ALL -Wl,--version-script=${CMAKE_SOURCE_DIR}/src/api/exports.map)
if(NOT THRICE_SANITIZE)
  target_link_options(thrice_shared PRIVATE -static-libstdc++ -static-libgcc -Wl,-z,defs)
endif()
