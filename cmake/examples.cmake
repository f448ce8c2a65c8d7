# The C and C++ programs of examples/: users of the shared library, so nothing of src/ is in reach. tests/python runs them.
file(GLOB example_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/examples/*.c ${CMAKE_SOURCE_DIR}/examples/*.cc)
foreach(source ${example_sources})
  get_filename_component(name ${source} NAME_WE)
  add_executable(example_${name} ${source})
  target_link_libraries(example_${name} PRIVATE thrice_shared Threads::Threads)
endforeach()
