#include "frontend/onnx/random_weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <unordered_map>

#include "base/hash.h"
#include "base/rng.h"

namespace thrice::frontend::onnx {
namespace {

enum class Role { kWeight, kScale, kQuantScale, kSmall };
struct Use {
  Role role = Role::kSmall;
  double fan_in = 1;
};

double product(const std::vector<int64_t>& shape, size_t first) {
  double result = 1;
  for (size_t i = first; i < shape.size(); ++i) result *= static_cast<double>(shape[i]);
  return result;
}

struct RoleRow {
  const char* op;
  size_t input;
  Role role;
};
// Operands with one meaning. Weights of products are in weight_fan_in.
constexpr RoleRow kRoles[] = {{"BatchNormalization", 1, Role::kScale},
                              {"BatchNormalization", 4, Role::kScale},
                              {"InstanceNormalization", 1, Role::kScale},
                              {"LayerNormalization", 1, Role::kScale},
                              {"SimplifiedLayerNormalization", 1, Role::kScale},
                              {"RMSNormalization", 1, Role::kScale},
                              {"GroupNormalization", 1, Role::kScale},
                              {"GroupNorm", 1, Role::kScale},
                              {"SkipLayerNormalization", 2, Role::kScale},
                              {"SkipSimplifiedLayerNormalization", 2, Role::kScale},
                              {"EmbedLayerNormalization", 5, Role::kScale},
                              {"PRelu", 1, Role::kScale},
                              {"Mul", 0, Role::kScale},
                              {"Mul", 1, Role::kScale},
                              {"Div", 0, Role::kScale},
                              {"Div", 1, Role::kScale},
                              {"Pow", 0, Role::kScale},
                              {"Sqrt", 0, Role::kScale},
                              {"Log", 0, Role::kScale},
                              {"Reciprocal", 0, Role::kScale},
                              {"QuantizeLinear", 1, Role::kQuantScale},
                              {"DequantizeLinear", 1, Role::kQuantScale},
                              {"QLinearConv", 4, Role::kQuantScale},
                              {"QLinearMatMul", 4, Role::kQuantScale}};

// Number of terms in a sum of a product's result; 0 when the operand is no weight of a product.
double weight_fan_in(const ModelNode& node, size_t input, const std::vector<int64_t>& shape) {
  const size_t rank = shape.size();
  const auto extent = [&](size_t axis) { return static_cast<double>(shape[axis]); };
  const auto flag = [&](const char* name) {
    const auto* attribute = node.find(name);
    return attribute != nullptr && attribute->i != 0;
  };
  const std::string& op = node.op_type;
  if (op == "MatMul" || op == "FusedMatMul" || op == "Gemm") {
    if (input > 1 || rank == 0) return 0;
    if (rank == 1) return extent(0);
    const bool transposed = flag(input == 0 ? "transA" : "transB");
    return extent((input == 0) != transposed ? rank - 1 : rank - 2);
  }
  if (op == "Conv" || op == "FusedConv") return input == 1 && rank >= 2 ? product(shape, 1) : 0;
  if (op == "ConvTranspose") return input == 1 && rank >= 2 ? extent(0) * product(shape, 2) : 0;
  if (op == "LSTM" || op == "GRU" || op == "RNN")
    return (input == 1 || input == 2) && rank == 3 ? extent(2) : 0;
  if (op == "Attention" && !node.domain.empty()) return input == 1 && rank == 2 ? extent(0) : 0;
  if (op == "Einsum") return rank >= 1 ? extent(0) : 0;
  return 0;
}

// Uses of names in one graph and the bodies inside it.
using Uses = std::unordered_map<std::string, std::vector<std::pair<const ModelNode*, size_t>>>;

void add_uses(const std::vector<ModelNode>& nodes, Uses& uses) {
  for (const auto& node : nodes) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!node.inputs[i].empty()) uses[node.inputs[i]].emplace_back(&node, i);
    }
    for (const auto& attribute : node.attributes) {
      if (attribute.graph) add_uses(attribute.graph->nodes, uses);
    }
  }
}

bool passes_through(const ModelNode& node, size_t input) {
  constexpr const char* kPassing[] = {
      "Identity",  "Cast",    "CastLike",  "Reshape",        "Squeeze",
      "Unsqueeze", "Flatten", "Transpose", "QuantizeLinear", "DequantizeLinear"};
  return input == 0 && !node.outputs.empty() &&
         std::any_of(std::begin(kPassing), std::end(kPassing),
                     [&](const char* op) { return node.op_type == op; });
}

std::vector<int64_t> passed_shape(const ModelNode& node, const std::vector<int64_t>& shape) {
  if (node.op_type != "Transpose") return shape;
  std::vector<int64_t> result(shape.rbegin(), shape.rend());
  const auto* perm = node.find("perm");
  if (perm == nullptr || perm->ints.size() != shape.size()) return result;
  for (size_t i = 0; i < shape.size(); ++i) {
    const int64_t from = perm->ints[i];
    if (from >= 0 && from < static_cast<int64_t>(shape.size())) result[i] = shape[static_cast<size_t>(from)];
  }
  return result;
}

Use use_of(const std::string& name, std::vector<int64_t> shape, const Uses& uses) {
  constexpr int kMaxSteps = 8;  // real chains (cast, transpose, reshape) have one or two
  std::string at = name;
  for (int step = 0; step < kMaxSteps; ++step) {
    const auto found = uses.find(at);
    if (found == uses.end()) break;
    const auto [node, input] = found->second.front();
    if (passes_through(*node, input)) {
      shape = passed_shape(*node, shape);
      at = node->outputs[0];
      continue;
    }
    if (const double fan_in = weight_fan_in(*node, input, shape); fan_in > 0) return {Role::kWeight, fan_in};
    for (const auto& row : kRoles) {
      if (node->op_type == row.op && input == row.input) return {row.role, 1};
    }
    break;
  }
  return {};
}

// About normal with unit variance: the sum of four uniform 16-bit numbers, from one draw. Tails end at 3.46.
double rough_normal(Rng& rng) {
  const uint64_t bits = rng.next();
  const uint64_t sum = (bits & 0xffff) + ((bits >> 16) & 0xffff) + ((bits >> 32) & 0xffff) + (bits >> 48);
  return (static_cast<double>(sum) + 2.0) / 65536.0 * 1.7320508075688772 - 3.4641016151377544;
}

void fill(ModelTensor& tensor, const std::string& name, const Use& use, uint64_t seed) {
  uint64_t own = 0;  // every tensor has a sequence of its own, whatever the order of tensors
  const Digest digest = hash_bytes(std::as_bytes(std::span(name)));
  std::memcpy(&own, digest.data(), sizeof(own));
  Rng rng(seed ^ own);
  ir::Tensor values(tensor.dtype, tensor.shape);
  std::byte* bytes = values.mutable_data();
  const double spread = use.role == Role::kWeight ? 1 / std::sqrt(use.fan_in) : 0.02;
  // Quantised weights reach 127; this puts dequantised ones near the spread of ordinary weights.
  const double scale = use.role == Role::kQuantScale ? 0.01 : 1;
  const bool positive = use.role == Role::kScale || use.role == Role::kQuantScale;
  const auto draw = [&] { return positive ? scale * (0.5 + rng.uniform()) : spread * rough_normal(rng); };
  if (tensor.dtype == DType::kF32) {  // nearly every weight: no look at the type for each element
    for (int64_t i = 0; i < values.size(); ++i) {
      const auto value = static_cast<float>(draw());
      std::memcpy(bytes + static_cast<size_t>(i) * sizeof(value), &value, sizeof(value));
    }
  } else {
    for (int64_t i = 0; i < values.size(); ++i) values.set(i, draw());
  }
  tensor.tensor = std::move(values);
  tensor.stripped = false;
}

void fill_graph(ModelGraph& graph, const Uses& uses, uint64_t seed);

void fill_nodes(std::vector<ModelNode>& nodes, const Uses& uses, uint64_t seed) {
  for (auto& node : nodes) {
    for (auto& attribute : node.attributes) {
      if (attribute.tensor.stripped) {
        const std::string name = node.outputs.empty() ? node.name : node.outputs[0];
        fill(attribute.tensor, name, use_of(name, attribute.tensor.shape, uses), seed);
      }
      if (attribute.graph) fill_graph(*attribute.graph, uses, seed);
    }
  }
}

void fill_graph(ModelGraph& graph, const Uses& uses, uint64_t seed) {
  for (auto& tensor : graph.initializers) {
    if (tensor.stripped) fill(tensor, tensor.name, use_of(tensor.name, tensor.shape, uses), seed);
  }
  fill_nodes(graph.nodes, uses, seed);
}

}  // namespace

void fill_random_weights(Model& model, uint64_t seed) {
  Uses uses;
  add_uses(model.graph.nodes, uses);
  fill_graph(model.graph, uses, seed);
  for (auto& function : model.functions) {
    Uses inner;
    add_uses(function.nodes, inner);
    fill_nodes(function.nodes, inner, seed);
  }
}

}  // namespace thrice::frontend::onnx
