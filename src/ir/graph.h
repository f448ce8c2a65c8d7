// The graph: what is computed. Nodes in topological order, values with types, constants, and where each node
// came from.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ir/dim.h"
#include "ir/op.h"
#include "ir/tensor.h"

namespace thrice::ir {

using ValueId = int32_t;
using NodeId = int32_t;
constexpr ValueId kNoValue = -1;  // an optional operand that is left out

using Attribute = std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>>;
using Attributes = std::map<std::string, Attribute>;

struct Type {
  DType dtype = DType::kF32;
  Shape shape;
  bool operator==(const Type&) const = default;
};

struct Value {
  Type type;
  std::string name;                // for people only; never enters kernel text; may be empty or repeated
  NodeId producer = -1;            // -1: graph input or constant
  std::optional<Tensor> constant;  // set for initializers and folded values
  bool is_weight = false;  // input of a workload that is a constant of its model: the same bytes in every run
  // Elements of a small integer tensor as expressions, where inference knows them (shape arithmetic).
  // Row-major; at most kMaxKnown of them.
  std::optional<std::vector<Dim>> known;
};
constexpr int64_t kMaxKnown = 64;  // shapes and their parts are short; larger integer tensors are data

struct Graph;

struct Node {
  Op op{};
  std::vector<ValueId> inputs;   // kNoValue where an optional operand is absent
  std::vector<ValueId> outputs;  // kNoValue where nobody wants the result
  Attributes attrs;
  int32_t origin = -1;  // index into Graph::origins: the model's operator this node was made from
  std::vector<std::shared_ptr<const Graph>>
      bodies;  // If: then, else; Loop, Scan: body. Captured outer values are extra inputs (docs/ops.md)

  int64_t int_attr(const std::string& key) const;  // throws kInternal when absent or of another kind
  int64_t int_attr(const std::string& key, int64_t otherwise) const;
  double float_attr(const std::string& key, double otherwise) const;
  std::string string_attr(const std::string& key, const std::string& otherwise) const;
  const std::vector<int64_t>& ints_attr(const std::string& key) const;
  bool has_attr(const std::string& key) const { return attrs.count(key) != 0; }
};

// One operator of the model file. Nodes that share an origin together compute that operator; the "original"
// plan runs each origin by itself.
struct Origin {
  std::string op_type;  // "HardSwish", "com.microsoft.Gelu"
  std::string name;     // node name, or its first output
  int64_t opset = 0;
};

struct Graph {
  std::string name;
  std::vector<Value> values;
  std::vector<Node> nodes;  // topological
  std::vector<ValueId> inputs, outputs;
  std::vector<std::string> input_names, output_names;  // as in the model; the keys users feed and read
  std::vector<Origin> origins;
  std::map<std::string, std::string> metadata;  // free text of the model (metadata_props)

  Value& value(ValueId id) { return values[static_cast<size_t>(id)]; }
  const Value& value(ValueId id) const { return values[static_cast<size_t>(id)]; }
  ValueId add_value(Type type, std::string name = {});
  ValueId add_constant(Tensor tensor, std::string name = {});
  NodeId add_node(Node node);  // sets the producers of its outputs; does not infer
};

// Consumers of each value: result[value] = node indices in order (a node that reads a value twice is listed
// once).
std::vector<std::vector<NodeId>> consumers(const Graph& graph);

}  // namespace thrice::ir
