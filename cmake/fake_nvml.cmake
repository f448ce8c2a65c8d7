# The scripted NVML of tests (tests/fake_nvml/): the folder fake_nvml/ of the build holds a libnvidia-ml.so.1 for LD_LIBRARY_PATH;
# fake_nvml_old/ one that lacks what old drivers lack. Loaded by name or path only, never linked.
foreach(name fake_nvml fake_nvml_old)
  add_library(${name} SHARED ${CMAKE_SOURCE_DIR}/tests/fake_nvml/fake_nvml.cc)
  set_target_properties(${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/${name}
    LIBRARY_OUTPUT_NAME nvidia-ml SOVERSION 1)
  target_compile_options(${name} PRIVATE ${THRICE_VENDOR_OPTIONS})
endforeach()
target_compile_definitions(fake_nvml_old PRIVATE FAKE_NVML_OLD)
foreach(test test_unit_hardware test_null_flow)
  if(TARGET ${test})
    add_dependencies(${test} fake_nvml fake_nvml_old)
    target_compile_definitions(${test} PRIVATE THRICE_FAKE_NVML="${CMAKE_BINARY_DIR}/fake_nvml"
      THRICE_FAKE_NVML_OLD="${CMAKE_BINARY_DIR}/fake_nvml_old")
  endif()
endforeach()
