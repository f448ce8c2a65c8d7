# One GoogleTest binary a folder of tests/unit, labelled by its top folder. gtest_discover_tests is avoided on purpose:
# one CTest entry a binary keeps start-up of the OpenCL driver out of hundreds of processes.
find_package(GTest QUIET)
if(NOT GTest_FOUND)
  message(STATUS "GoogleTest not found: tests are not built")
  return()
endif()
# Packed test data lies in the build folder as data/<archive's name>; tests read it through THRICE_DATA_DIR.
file(GLOB data_archives CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/data/*.tar.zst)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${data_archives})
execute_process(COMMAND ${CMAKE_SOURCE_DIR}/tools/unpack_data.sh ${CMAKE_BINARY_DIR} COMMAND_ERROR_IS_FATAL ANY)
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/cuda_texts)
foreach(group unit null cross golden error fault)
  file(GLOB folders LIST_DIRECTORIES true CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${group}/*)
  foreach(folder ${folders})
    if(IS_DIRECTORY ${folder})
      get_filename_component(name ${folder} NAME)
      file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${folder}/*.cc)
      if(sources)
        add_executable(test_${group}_${name} ${sources})
        target_link_libraries(test_${group}_${name} PRIVATE ${THRICE_ALL} GTest::gtest GTest::gtest_main)
        target_include_directories(test_${group}_${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
        target_compile_definitions(test_${group}_${name} PRIVATE THRICE_SOURCE_DIR="${CMAKE_SOURCE_DIR}" THRICE_DATA_DIR="${CMAKE_BINARY_DIR}/data"
          THRICE_CUDA_TEXT_DIR="${CMAKE_BINARY_DIR}/cuda_texts")
        add_test(NAME ${group}_${name} COMMAND test_${group}_${name})
        set_tests_properties(${group}_${name} PROPERTIES LABELS ${group} TIMEOUT 900)
      endif()
    endif()
  endforeach()
endforeach()

# A program, not a GoogleTest: its tests lie outside the repository (tools/node_tests.py); tools/conformance.py runs it.
add_executable(run_node_tests ${CMAKE_SOURCE_DIR}/tests/conformance/node_tests.cc)
target_link_libraries(run_node_tests PRIVATE ${THRICE_ALL})

# Worker processes are the executable itself.
foreach(test test_fault_workers test_fault_races)
  if(TARGET ${test})
    add_dependencies(${test} thrice)
    target_compile_definitions(${test} PRIVATE THRICE_EXECUTABLE="$<TARGET_FILE:thrice>")
  endif()
endforeach()
