#include "frontend/onnx/decode.h"

#include <fmt/format.h>
#include <onnx_subset.pb.h>
#include <thrice/status.h>

#include <set>
#include <string_view>
#include <tuple>

#include "frontend/onnx/sort.h"
#include "frontend/onnx/tensor_decode.h"

namespace thrice::frontend::onnx {
namespace {

namespace pb = onnx_format;

// protobuf counts in int.
constexpr size_t kMaxProtobufBytes = size_t{INT32_MAX};

class Decoder {
 public:
  explicit Decoder(const DecodeOptions& options) : external_(options.folder) {}

  Model decode(pb::ModelProto& proto) {
    if (!proto.has_graph()) {
      throw Error(Code::kInvalidModel,
                  "the file holds no graph: it is not an ONNX model, or it is damaged; export the model to "
                  "ONNX again");
    }
    Model model;
    model.ir_version = proto.ir_version();
    model.producer = proto.producer_name();
    if (!proto.producer_version().empty()) model.producer += " " + proto.producer_version();
    model.opsets = opsets(proto.opset_import(), "model");
    if (model.opsets.empty()) model.opsets[""] = 1;  // the format's rule for files older than operator sets
    for (const auto& entry : proto.metadata_props()) model.metadata[entry.key()] = entry.value();
    std::set<std::tuple<std::string, std::string, std::string>> seen;
    for (auto& function : *proto.mutable_functions()) {
      model.functions.push_back(decode_function(function));
      const auto& last = model.functions.back();
      if (!seen.emplace(last.domain, last.name, last.overload).second) {
        throw Error(Code::kInvalidModel, fmt::format("function '{}' is defined twice", last.name));
      }
    }
    model.graph = decode_graph(*proto.mutable_graph());
    sort_graph(model.graph);
    for (auto& function : model.functions) sort_function(function);
    model.num_stripped = num_stripped_;
    return model;
  }

 private:
  template <class Field>
  static std::map<std::string, int64_t> opsets(const Field& field, const std::string& where) {
    std::map<std::string, int64_t> result;
    for (const auto& entry : field) {
      const std::string domain = canonical_domain(entry.domain());
      const auto [at, added] = result.emplace(domain, entry.version());
      if (!added && at->second != entry.version()) {
        throw Error(Code::kInvalidModel,
                    fmt::format("{}: operator set '{}' is imported as version {} and as {}", where,
                                domain.empty() ? "ai.onnx" : domain, at->second, entry.version()));
      }
    }
    return result;
  }

  ModelTensor tensor(pb::TensorProto& proto, const std::string& where) {
    ModelTensor result = decode_tensor(proto, external_, where);
    if (result.stripped) ++num_stripped_;
    return result;
  }

  ModelGraph decode_graph(pb::GraphProto& proto) {
    ModelGraph graph;
    graph.name = proto.name();
    for (auto& initializer : *proto.mutable_initializer()) {
      if (initializer.name().empty()) throw Error(Code::kInvalidModel, "an initializer has no name");
      graph.initializers.push_back(tensor(initializer, fmt::format("initializer '{}'", initializer.name())));
    }
    for (auto& initializer : *proto.mutable_sparse_initializer()) {
      const std::string name = initializer.values().name();
      if (name.empty()) throw Error(Code::kInvalidModel, "a sparse initializer has no name");
      graph.initializers.push_back(
          decode_sparse_tensor(initializer, external_, fmt::format("initializer '{}'", name)));
    }
    for (const auto& info : proto.input()) graph.inputs.push_back(value_info(info, "input"));
    for (const auto& info : proto.output()) graph.outputs.push_back(value_info(info, "output"));
    graph.nodes.reserve(static_cast<size_t>(proto.node_size()));
    for (auto& node : *proto.mutable_node()) graph.nodes.push_back(decode_node(node));
    return graph;
  }

  static std::string describe(const pb::TypeProto& type) {
    switch (type.value_case()) {
      case pb::TypeProto::kSequenceType:
        return "a sequence";
      case pb::TypeProto::kOptionalType:
        return "an optional value";
      case pb::TypeProto::kMapType:
        return "a map";
      case pb::TypeProto::kSparseTensorType:
        return "a sparse tensor";
      case pb::TypeProto::kOpaqueType:
        return "an opaque type";
      default:
        return "";
    }
  }

  static ModelValueInfo value_info(const pb::ValueInfoProto& proto, const char* role) {
    ModelValueInfo info;
    info.name = proto.name();
    const std::string where = fmt::format("{} '{}'", role, info.name);
    if (info.name.empty()) throw Error(Code::kInvalidModel, fmt::format("a graph {} has no name", role));
    info.unsupported = describe(proto.type());
    if (!proto.type().has_tensor_type()) return info;
    const auto& type = proto.type().tensor_type();
    info.typed = type.elem_type() != 0;
    if (info.typed) info.dtype = dtype_of_onnx(type.elem_type(), where);
    info.ranked = type.has_shape();
    for (const auto& dim : type.shape().dim()) {
      ModelValueInfo::Extent extent;
      extent.is_number = dim.has_dim_value() && dim.dim_value() >= 0;  // old exporters write -1 for "unknown"
      if (extent.is_number) extent.number = dim.dim_value();
      // Paddle's exporter writes "?" for every unknown extent: it names nothing, two of them need not be
      // equal.
      if (dim.has_dim_param() && dim.dim_param() != "?") extent.symbol = dim.dim_param();
      info.shape.push_back(std::move(extent));
    }
    return info;
  }

  ModelNode decode_node(pb::NodeProto& proto) {
    ModelNode node;
    node.domain = canonical_domain(proto.domain());
    node.op_type = proto.op_type();
    node.overload = proto.overload();
    node.name = proto.name();
    node.inputs.assign(proto.input().begin(), proto.input().end());
    node.outputs.assign(proto.output().begin(), proto.output().end());
    if (node.op_type.empty())
      throw Error(Code::kInvalidModel, fmt::format("node '{}' has no operator", node.label()));
    std::set<std::string> seen;
    for (auto& attribute : *proto.mutable_attribute()) {
      if (!seen.insert(attribute.name()).second) {
        throw Error(Code::kInvalidModel, fmt::format("node '{}' ({}): attribute '{}' is given twice",
                                                     node.label(), node.op_type, attribute.name()));
      }
      node.attributes.push_back(
          decode_attribute(attribute, fmt::format("node '{}' ({})", node.label(), node.op_type)));
    }
    return node;
  }

  // Files older than the `type` field: the field that is filled tells.
  static int32_t kind_of(const pb::AttributeProto& proto) {
    if (proto.type() != 0) return proto.type();
    if (proto.has_f()) return ModelAttribute::kFloat;
    if (proto.has_i()) return ModelAttribute::kInt;
    if (proto.has_s()) return ModelAttribute::kString;
    if (proto.has_t()) return ModelAttribute::kTensor;
    if (proto.has_g()) return ModelAttribute::kGraph;
    if (proto.floats_size() > 0) return ModelAttribute::kFloats;
    if (proto.ints_size() > 0) return ModelAttribute::kInts;
    if (proto.strings_size() > 0) return ModelAttribute::kStrings;
    return ModelAttribute::kUndefined;
  }

  ModelAttribute decode_attribute(pb::AttributeProto& proto, const std::string& node) {
    ModelAttribute attribute;
    attribute.name = proto.name();
    attribute.ref_name = proto.ref_attr_name();
    const int32_t kind = kind_of(proto);
    const std::string where = fmt::format("{}, attribute '{}'", node, proto.name());
    if (kind < 0 || kind > ModelAttribute::kTypes) {
      throw Error(Code::kInvalidModel, fmt::format("{}: {} is no attribute type", where, kind));
    }
    attribute.kind = static_cast<ModelAttribute::Kind>(kind);
    if (!attribute.ref_name.empty()) return attribute;
    switch (attribute.kind) {
      case ModelAttribute::kFloat:
        attribute.f = static_cast<double>(proto.f());
        break;
      case ModelAttribute::kInt:
        attribute.i = proto.i();
        break;
      case ModelAttribute::kString:
        attribute.s = proto.s();
        break;
      case ModelAttribute::kFloats:
        attribute.floats.assign(proto.floats().begin(), proto.floats().end());
        break;
      case ModelAttribute::kInts:
        attribute.ints.assign(proto.ints().begin(), proto.ints().end());
        break;
      case ModelAttribute::kStrings:
        attribute.strings.assign(proto.strings().begin(), proto.strings().end());
        break;
      case ModelAttribute::kTensor:
        if (!proto.has_t()) throw Error(Code::kInvalidModel, fmt::format("{}: the tensor is missing", where));
        attribute.tensor = tensor(*proto.mutable_t(), where);
        break;
      case ModelAttribute::kSparseTensor:
        attribute.tensor = decode_sparse_tensor(*proto.mutable_sparse_tensor(), external_, where);
        break;
      case ModelAttribute::kGraph:
        if (!proto.has_g()) throw Error(Code::kInvalidModel, fmt::format("{}: the graph is missing", where));
        attribute.graph = std::make_shared<ModelGraph>(decode_graph(*proto.mutable_g()));
        break;
      default:  // lists of tensors and graphs, types: no supported operator has them, and its import says so
        break;
    }
    return attribute;
  }

  ModelFunction decode_function(pb::FunctionProto& proto) {
    ModelFunction function;
    function.domain = canonical_domain(proto.domain());
    function.name = proto.name();
    function.overload = proto.overload();
    const std::string where = fmt::format("function '{}'", function.name);
    if (function.name.empty()) throw Error(Code::kInvalidModel, "a function has no name");
    function.inputs.assign(proto.input().begin(), proto.input().end());
    function.outputs.assign(proto.output().begin(), proto.output().end());
    function.attributes.assign(proto.attribute().begin(), proto.attribute().end());
    for (auto& attribute : *proto.mutable_attribute_proto()) {
      function.default_attributes.push_back(decode_attribute(attribute, where));
    }
    for (auto& node : *proto.mutable_node()) function.nodes.push_back(decode_node(node));
    function.opsets = opsets(proto.opset_import(), where);
    return function;
  }

  ExternalData external_;
  int64_t num_stripped_ = 0;
};

template <class Proto>
void parse(Proto& proto, std::span<const std::byte> bytes, const char* what) {
  if (bytes.size() > kMaxProtobufBytes) {
    throw Error(
        Code::kInvalidModel,
        fmt::format("{} of {} bytes: a protobuf file ends at 2 GiB; keep the weights as external data", what,
                    bytes.size()));
  }
  if (!proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    constexpr std::string_view kRelease = "THRICE";  // docs/release_format.md
    if (std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size())
            .substr(0, kRelease.size()) == kRelease)
      throw Error(
          Code::kInvalidModel,
          fmt::format("{} is a release, no ONNX model; `thrice explain` and `thrice run` take it", what));
    throw Error(
        Code::kInvalidModel,
        fmt::format(
            "{} of {} bytes is no ONNX protobuf: it is truncated, damaged, of another kind, or nested "
            "more than 100 messages deep; copy or export it again, whole",
            what, bytes.size()));
  }
}

}  // namespace

Model decode_model(std::span<const std::byte> bytes, const DecodeOptions& options) {
  if (bytes.size() > options.max_bytes) {
    throw Error(Code::kInvalidModel, fmt::format("the model has {} bytes, more than the limit of {}",
                                                 bytes.size(), options.max_bytes));
  }
  if (bytes.empty()) throw Error(Code::kInvalidModel, "the model file is empty; copy or export it again");
  pb::ModelProto proto;
  parse(proto, bytes, "the model file");
  return Decoder(options).decode(proto);
}

ir::Tensor decode_tensor_bytes(std::span<const std::byte> bytes) {
  pb::TensorProto proto;
  parse(proto, bytes, "the tensor file");
  ExternalData none("");
  ModelTensor result = decode_tensor(proto, none, "tensor file");
  if (result.stripped) throw Error(Code::kInvalidModel, "tensor file: its data was stripped");
  return result.tensor;
}

ir::Tensor read_tensor_file(const std::string& path) {
  const auto file = map_file(path);
  try {
    return decode_tensor_bytes(file->bytes);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", path, error.what()));
  }
}

}  // namespace thrice::frontend::onnx
