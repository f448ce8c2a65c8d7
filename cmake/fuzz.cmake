# Fuzz targets, one a file tests/fuzz/fuzz_NAME.cc, each with a corpus in tests/fuzz/corpus/NAME.
# Always: a replay of the corpus with seeded mutations, label `fuzz` (a smoke run that every compiler builds).
# With -DTHRICE_FUZZ=ON and clang (preset asan): the libFuzzer executables too; tools/fuzz_smoke.sh SECONDS builds and runs them.
file(GLOB fuzz_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/fuzz/fuzz_*.cc)
foreach(source ${fuzz_sources})
  get_filename_component(target ${source} NAME_WE)
  string(REPLACE "fuzz_" "" name ${target})
  if(THRICE_FUZZ)
    add_executable(${target} ${source})
    target_link_libraries(${target} PRIVATE ${THRICE_ALL})
    target_link_options(${target} PRIVATE -fsanitize=fuzzer)
  endif()
  add_executable(${target}_replay ${source} ${CMAKE_SOURCE_DIR}/tests/fuzz/replay.cc)
  target_link_libraries(${target}_replay PRIVATE ${THRICE_ALL})
  add_test(NAME fuzz_${name} COMMAND ${target}_replay ${CMAKE_SOURCE_DIR}/tests/fuzz/corpus/${name})
  set_tests_properties(fuzz_${name} PROPERTIES LABELS fuzz TIMEOUT 600)
endforeach()
