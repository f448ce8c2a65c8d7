// A decoded ONNX file as plain structs: checked for form, not yet for meaning. Everything after decode.cc
// works on these; the protobuf classes stay inside decode.cc, tensor_decode.cc and strip.cc.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace thrice::frontend::onnx {

struct ModelGraph;

// Tensor of an initializer or attribute. A stripped one (docs/stripped_models.md) has a type but no data yet.
struct ModelTensor {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  bool stripped = false;
  ir::Tensor tensor;  // empty while stripped
};

struct ModelAttribute {
  // Numbers as in the file format.
  enum Kind {
    kUndefined = 0,
    kFloat = 1,
    kInt = 2,
    kString = 3,
    kTensor = 4,
    kGraph = 5,
    kFloats = 6,
    kInts = 7,
    kStrings = 8,
    kTensors = 9,
    kGraphs = 10,
    kSparseTensor = 11,
    kSparseTensors = 12,
    kType = 13,
    kTypes = 14,
  };
  std::string name;
  Kind kind = kUndefined;
  std::string ref_name;  // inside a local function: the function's attribute whose value is taken
  double f = 0;
  int64_t i = 0;
  std::string s;
  std::vector<double> floats;
  std::vector<int64_t> ints;
  std::vector<std::string> strings;
  ModelTensor tensor;                 // kTensor, and kSparseTensor made dense
  std::shared_ptr<ModelGraph> graph;  // kGraph
};

struct ModelNode {
  std::string domain;  // "" = ai.onnx
  std::string op_type;
  std::string overload;
  std::string name;                  // may be empty
  std::vector<std::string> inputs;   // "" = absent
  std::vector<std::string> outputs;  // "" = unwanted
  std::vector<ModelAttribute> attributes;

  const ModelAttribute* find(const std::string& attribute) const;
  std::string label() const;  // name for messages: own name, else first output, else the operator
};

// Declared type of a graph input or output. `kind` says in words what is not a tensor ("sequence of
// tensors").
struct ModelValueInfo {
  std::string name;
  std::string unsupported;  // empty for a tensor
  bool typed = false;       // false: the file gives no element type
  DType dtype = DType::kF32;
  bool ranked = false;
  struct Extent {
    bool is_number = false;
    int64_t number = 0;
    std::string symbol;  // empty and not a number: unknown
  };
  std::vector<Extent> shape;
};

struct ModelGraph {
  std::string name;
  std::vector<ModelNode> nodes;  // sorted so that producers come first
  std::vector<ModelValueInfo> inputs, outputs;
  std::vector<ModelTensor> initializers;
};

struct ModelFunction {
  std::string domain, name, overload;
  std::vector<std::string> inputs, outputs;
  std::vector<std::string> attributes;             // must be given by the caller
  std::vector<ModelAttribute> default_attributes;  // with a value where the caller gives none
  std::vector<ModelNode> nodes;
  std::map<std::string, int64_t> opsets;
};

struct Model {
  int64_t ir_version = 0;
  std::string producer;                   // name and version
  std::map<std::string, int64_t> opsets;  // domain ("" = ai.onnx) -> version
  std::map<std::string, std::string> metadata;
  std::vector<ModelFunction> functions;
  ModelGraph graph;
  int64_t num_stripped = 0;  // tensors without data
};

// Domain as a key: "ai.onnx" and "" are one.
std::string canonical_domain(const std::string& domain);

}  // namespace thrice::frontend::onnx
