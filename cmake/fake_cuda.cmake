# The scripted driver of tests (tests/fake_cuda/): the folder fake_cuda/ of the build holds a libcuda.so.1 and a libnvrtc.so.12
# for LD_LIBRARY_PATH; fake_cuda_old/ a driver that lacks what old ones lack. Loaded by name or path only, never linked.
set(fake_cuda ${CMAKE_SOURCE_DIR}/tests/fake_cuda)
foreach(name fake_cuda fake_cuda_old)
  add_library(${name} SHARED ${fake_cuda}/driver.cc ${fake_cuda}/driver_work.cc ${fake_cuda}/machine.cc ${fake_cuda}/script.cc)
  set_target_properties(${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/${name}
    LIBRARY_OUTPUT_NAME cuda SOVERSION 1)
endforeach()
target_compile_definitions(fake_cuda_old PRIVATE FAKE_CUDA_OLD)
add_library(fake_nvrtc SHARED ${fake_cuda}/fake_nvrtc.cc)
set_target_properties(fake_nvrtc PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fake_cuda
  LIBRARY_OUTPUT_NAME nvrtc SOVERSION 12)
foreach(name fake_cuda fake_cuda_old fake_nvrtc)
  target_compile_options(${name} PRIVATE ${THRICE_VENDOR_OPTIONS})
endforeach()
if(TARGET test_unit_backend_cuda)
  add_dependencies(test_unit_backend_cuda fake_cuda fake_cuda_old fake_nvrtc)
  target_compile_definitions(test_unit_backend_cuda PRIVATE THRICE_FAKE_CUDA="${CMAKE_BINARY_DIR}/fake_cuda")
endif()
