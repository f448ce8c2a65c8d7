// Bytes of an ONNX file -> Model. The only door for untrusted bytes: everything behind it may rely on what is
// checked here.
#pragma once
#include <cstddef>
#include <span>
#include <string>

#include "frontend/onnx/model.h"

namespace thrice::frontend::onnx {

struct DecodeOptions {
  std::string folder;  // where external data lies; empty: external data is refused
  size_t max_bytes = size_t{8} << 30;
};

// Checked: protobuf form and nesting (at most 100 messages deep), one definition a name, every used name
// defined (a body may use names of the graphs around it), every graph output defined, no cycles; nodes are
// sorted. Tensor sizes agree with their shapes. Errors: kInvalidModel (with node or tensor), kUnsupported
// (sparse or training parts that cannot be read), kNotFound and kIo for external data.
Model decode_model(std::span<const std::byte> bytes, const DecodeOptions& options = {});

// A TensorProto file (input_0.pb of ONNX's node tests).
ir::Tensor decode_tensor_bytes(std::span<const std::byte> bytes);
ir::Tensor read_tensor_file(const std::string& path);

}  // namespace thrice::frontend::onnx
