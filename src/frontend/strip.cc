// Structure-only copies of models: docs/stripped_models.md is the format. Works on the protobuf classes, so
// that all it does not touch stays as it was, fields that thrice does not know included.
#include <fmt/format.h>
#include <onnx_subset.pb.h>
#include <thrice/status.h>

#include "base/file.h"
#include "frontend/import.h"
#include "frontend/onnx/external_data.h"

namespace thrice::frontend {
namespace {

namespace pb = onnx_format;

constexpr uint64_t kKeptBytes = 1024;  // scales, epsilons and bounds stay

// Bits of an element of the floating types of the format; 0 for all others.
uint64_t float_bits(int32_t type) {
  switch (type) {
    case 1:
      return 32;
    case 10:
    case 16:
      return 16;
    case 11:
    case 14:
      return 64;
    case 15:
      return 128;
    case 17:
    case 18:
    case 19:
    case 20:
    case 24:
      return 8;
    case 23:
      return 4;
    case 27:
    case 28:
      return 6;
    default:
      return 0;
  }
}

void strip(pb::TensorProto& tensor) {
  tensor.clear_doc_string();
  tensor.clear_metadata_props();
  const uint64_t bits = float_bits(tensor.data_type());
  if (bits == 0) return;
  uint64_t size = bits;
  for (const int64_t extent : tensor.dims()) {
    if (extent < 0 || __builtin_mul_overflow(size, static_cast<uint64_t>(extent), &size)) {
      throw Error(Code::kInvalidModel, fmt::format("tensor '{}' has absurd extents", tensor.name()));
    }
  }
  size = size / 8 + (size % 8 != 0);
  if (size <= kKeptBytes) return;
  tensor.clear_raw_data();
  tensor.clear_float_data();
  tensor.clear_double_data();
  tensor.clear_int32_data();
  tensor.clear_uint64_data();
  tensor.clear_external_data();
  tensor.set_data_location(1);
  const auto entry = [&](const char* key, std::string value) {
    auto* added = tensor.add_external_data();
    added->set_key(key);
    added->set_value(std::move(value));
  };
  entry("location", onnx::kStrippedLocation);
  entry("length", std::to_string(size));
}

void strip(pb::GraphProto& graph);

void strip(pb::AttributeProto& attribute) {
  attribute.clear_doc_string();
  if (attribute.has_t()) strip(*attribute.mutable_t());
  for (auto& tensor : *attribute.mutable_tensors()) strip(tensor);
  if (attribute.has_sparse_tensor()) strip(*attribute.mutable_sparse_tensor()->mutable_values());
  for (auto& tensor : *attribute.mutable_sparse_tensors()) strip(*tensor.mutable_values());
  if (attribute.has_g()) strip(*attribute.mutable_g());
  for (auto& graph : *attribute.mutable_graphs()) strip(graph);
}

void strip(pb::NodeProto& node) {
  node.clear_doc_string();
  node.clear_metadata_props();
  for (auto& attribute : *node.mutable_attribute()) strip(attribute);
}

void strip(pb::GraphProto& graph) {
  graph.clear_doc_string();
  graph.clear_metadata_props();
  for (auto& tensor : *graph.mutable_initializer()) strip(tensor);
  for (auto& tensor : *graph.mutable_sparse_initializer()) strip(*tensor.mutable_values());
  for (auto* infos : {graph.mutable_input(), graph.mutable_output(), graph.mutable_value_info()}) {
    for (auto& info : *infos) {
      info.clear_doc_string();
      info.clear_metadata_props();
    }
  }
  for (auto& node : *graph.mutable_node()) strip(node);
}

}  // namespace

void strip_model(const std::string& path, const std::string& output) {
  const auto file = onnx::map_file(path);
  pb::ModelProto model;
  if (file->bytes.size() > size_t{INT32_MAX} ||
      !model.ParseFromArray(file->bytes.data(), static_cast<int>(file->bytes.size())) || !model.has_graph()) {
    throw Error(Code::kInvalidModel, fmt::format("{}: is no ONNX protobuf: it is truncated, damaged or of "
                                                 "another kind; copy or export it again, whole",
                                                 path));
  }
  model.clear_doc_string();
  model.clear_metadata_props();
  strip(*model.mutable_graph());
  for (auto& function : *model.mutable_functions()) {
    function.clear_doc_string();
    function.clear_metadata_props();
    for (auto& attribute : *function.mutable_attribute_proto()) strip(attribute);
    for (auto& node : *function.mutable_node()) strip(node);
  }
  std::string bytes;
  if (!model.SerializeToString(&bytes)) throw Error(Code::kInternal, "the stripped model cannot be written");
  write_file_atomic(output, std::string_view(bytes));
}

}  // namespace thrice::frontend
