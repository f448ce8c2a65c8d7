# The ONNX subset schema becomes a library of generated code, compiled without our warnings.
set(proto ${CMAKE_SOURCE_DIR}/src/frontend/onnx/onnx_subset.proto)
set(generated ${CMAKE_BINARY_DIR}/generated)
file(MAKE_DIRECTORY ${generated})
add_custom_command(OUTPUT ${generated}/onnx_subset.pb.cc ${generated}/onnx_subset.pb.h
  COMMAND protobuf::protoc --cpp_out=${generated} -I ${CMAKE_SOURCE_DIR}/src/frontend/onnx ${proto}
  DEPENDS ${proto} VERBATIM)
set(THRICE_ONNX_PROTO_SOURCES ${generated}/onnx_subset.pb.cc)
add_library(thrice_onnx_proto STATIC ${THRICE_ONNX_PROTO_SOURCES} ${generated}/onnx_subset.pb.h)
target_compile_options(thrice_onnx_proto PRIVATE -w)
target_include_directories(thrice_onnx_proto SYSTEM PUBLIC ${generated})
target_link_libraries(thrice_onnx_proto PUBLIC thrice_third_party)
