# Kernel texts under kernels/ become C++ string tables at build, so that a deployed executable carries them.
file(GLOB_RECURSE THRICE_KERNEL_TEXTS CONFIGURE_DEPENDS
  ${CMAKE_SOURCE_DIR}/kernels/*.cl ${CMAKE_SOURCE_DIR}/kernels/*.cuh ${CMAKE_SOURCE_DIR}/kernels/*.h)
set(THRICE_EMBEDDED_KERNELS ${CMAKE_BINARY_DIR}/embedded_kernels.cc)
add_custom_command(OUTPUT ${THRICE_EMBEDDED_KERNELS}
  COMMAND ${CMAKE_COMMAND} -DOUT=${THRICE_EMBEDDED_KERNELS} -DROOT=${CMAKE_SOURCE_DIR}/kernels
          -P ${CMAKE_SOURCE_DIR}/cmake/embed_texts.cmake
  DEPENDS ${THRICE_KERNEL_TEXTS} ${CMAKE_SOURCE_DIR}/cmake/embed_texts.cmake VERBATIM)
# So do the agent's files under data/agent/.
set(THRICE_EMBEDDED_AGENT ${CMAKE_BINARY_DIR}/embedded_agent.cc)
add_custom_command(OUTPUT ${THRICE_EMBEDDED_AGENT}
  COMMAND ${CMAKE_COMMAND} -DOUT=${THRICE_EMBEDDED_AGENT} -DROOT=${CMAKE_SOURCE_DIR}/data/agent
          -P ${CMAKE_SOURCE_DIR}/cmake/embed_agent.cmake
  DEPENDS ${CMAKE_SOURCE_DIR}/data/agent/pretrained.txt ${CMAKE_SOURCE_DIR}/data/agent/rivals.txt
          ${CMAKE_SOURCE_DIR}/cmake/embed_agent.cmake VERBATIM)
