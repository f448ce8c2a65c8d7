#include "api/tensors.h"

#include <fmt/format.h>
#include <thrice/status.h>

namespace thrice::api {

namespace {

constexpr int32_t kMaxRank = 64;

std::string input_name(const ir::Graph& graph, size_t i) {
  return i < graph.input_names.size() ? fmt::format("input '{}'", graph.input_names[i])
                                      : fmt::format("input {}", i);
}

exec::Operand operand_of(backend::Device& device, const thrice_tensor& tensor, const std::string& what) {
  if (tensor.rank < 0 || tensor.rank > kMaxRank || (tensor.rank > 0 && !tensor.shape))
    throw Error(Code::kInvalidArgument,
                fmt::format("{} has rank {} and {} shape", what, tensor.rank, tensor.shape ? "a" : "no"));
  if (thrice_dtype_bytes(tensor.dtype) == 0)
    throw Error(Code::kInvalidArgument, fmt::format("{}: {} is no dtype of thrice.h", what, tensor.dtype));
  exec::Operand operand;
  operand.dtype = static_cast<DType>(tensor.dtype);
  operand.shape.assign(tensor.shape, tensor.shape + tensor.rank);
  for (int64_t extent : operand.shape)
    if (extent < 0)
      throw Error(Code::kInvalidArgument, fmt::format("{} has shape {}: an extent is negative", what,
                                                      ir::shape_str(ir::to_shape(operand.shape))));
  const size_t bytes = operand.bytes();
  if (bytes > 0 && !tensor.data) throw Error(Code::kInvalidArgument, what + " has no data");
  if (tensor.memory == THRICE_DEVICE) {
    // An empty tensor may come without memory; kernels never touch it.
    operand.device = {bytes > 0 ? device.wrap(tensor.data, bytes) : device.allocate(0), 0, bytes};
  } else if (tensor.memory == THRICE_HOST) {
    operand.host = ir::Tensor(operand.dtype, operand.shape,
                              {static_cast<const std::byte*>(tensor.data), bytes}, nullptr);
  } else {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: memory {} is neither THRICE_HOST nor THRICE_DEVICE", what, tensor.memory));
  }
  return operand;
}

}  // namespace

std::vector<exec::Operand> operands_of(backend::Device& device, const ir::Graph& graph,
                                       const thrice_tensor* inputs, size_t num_inputs) {
  if (num_inputs != graph.inputs.size() || (num_inputs > 0 && !inputs)) {
    std::string names;
    for (const std::string& name : graph.input_names) names += (names.empty() ? "" : ", ") + name;
    throw Error(Code::kInvalidArgument, fmt::format("{} inputs were given, the model takes {}: {}",
                                                    inputs ? num_inputs : 0, graph.inputs.size(), names));
  }
  std::vector<exec::Operand> operands;
  operands.reserve(num_inputs);
  for (size_t i = 0; i < num_inputs; ++i)
    operands.push_back(operand_of(device, inputs[i], input_name(graph, i)));
  return operands;
}

Description::Description(const ir::Graph& graph, const std::vector<ir::ValueId>& values,
                         const std::vector<std::string>& names) {
  tensors_.resize(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const ir::Type& type = graph.value(values[i]).type;
    Tensor& tensor = tensors_[i];
    tensor.name = names[i];
    tensor.dtype = type.dtype;
    for (const ir::Dim& dim : type.shape) {
      tensor.shape.push_back(dim.is_const() ? dim.value() : -1);
      tensor.expressions.push_back(dim.str());
    }
    for (const std::string& text : tensor.expressions) tensor.pointers.push_back(text.c_str());
  }
}

thrice_tensor_info Description::info(size_t index) const {
  if (index >= tensors_.size())
    throw Error(Code::kInvalidArgument, fmt::format("index {} of {} tensors", index, tensors_.size()));
  const Tensor& t = tensors_[index];
  return {t.name.c_str(), t.shape.data(), t.pointers.data(), static_cast<int32_t>(t.shape.size()),
          static_cast<thrice_dtype>(t.dtype)};
}

}  // namespace thrice::api
