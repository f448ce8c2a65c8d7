// What an operator's import function sees: one ONNX node, its operands' types and known values, and a builder
// of IR nodes.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace thrice::frontend::onnx {

using ir::Attributes;
using ir::Dim;
using ir::Op;
using ir::Tensor;
using ir::ValueId;

class GraphBuilder;  // node_context.cc's own
struct ModelNode;    // the decoded node (model.h)

// Every emit() infers the result's type at once, so types and known values can be asked of any ValueId seen
// so far. Errors name the node by themselves.
class NodeContext {
 public:
  NodeContext(GraphBuilder& builder, const ModelNode& node, int64_t opset);

  const std::string& op_type() const;
  int64_t opset() const { return opset_; }  // of the node's domain

  // Operands. An empty name is an absent operand.
  size_t num_inputs() const;
  size_t num_outputs() const;
  bool has_input(size_t i) const;
  ValueId input(size_t i) const;           // throws kInvalidModel when absent
  ValueId optional_input(size_t i) const;  // ir::kNoValue when absent
  bool wants_output(size_t i) const;       // named in the model
  void set_output(size_t i, ValueId value);

  // ONNX attributes. The one-argument forms throw kInvalidModel when absent.
  bool has_attr(const std::string& name) const;
  int64_t int_attr(const std::string& name) const;
  int64_t int_attr(const std::string& name, int64_t otherwise) const;
  double float_attr(const std::string& name, double otherwise) const;
  std::string string_attr(const std::string& name, const std::string& otherwise) const;
  std::vector<int64_t> ints_attr(const std::string& name, const std::vector<int64_t>& otherwise = {}) const;
  std::vector<double> floats_attr(const std::string& name) const;
  std::vector<std::string> strings_attr(const std::string& name) const;
  Tensor tensor_attr(const std::string& name) const;

  // Building.
  ValueId emit(Op op, const std::vector<ValueId>& inputs, Attributes attrs = {});
  std::vector<ValueId> emit_many(Op op, const std::vector<ValueId>& inputs, size_t num_outputs,
                                 Attributes attrs = {});
  ValueId constant(Tensor tensor);
  ValueId scalar(DType dtype, double value);         // rank 0
  ValueId ints(const std::vector<int64_t>& values);  // i64 vector, for shape operands
  ValueId dims(
      const std::vector<Dim>& values);  // i64 vector of expressions: a constant where all are numbers, else
                                        // built from `shape` nodes of values seen so far

  // Facts.
  const ir::Type& type(ValueId value) const;
  DType dtype(ValueId value) const { return type(value).dtype; }
  int64_t rank(ValueId value) const { return static_cast<int64_t>(type(value).shape.size()); }
  Dim dim(ValueId value, int64_t axis) const;         // negative axis counts from the end
  int64_t axis(ValueId value, int64_t axis) const;    // normalized; throws kInvalidModel out of range
  const Tensor* constant_value(ValueId value) const;  // nullptr when not a constant
  std::optional<std::vector<Dim>> known(ValueId value) const;           // small integer value as expressions
  std::optional<std::vector<int64_t>> known_ints(ValueId value) const;  // ... where all are numbers
  // Value of an operand that decides the graph's structure (axes of a reduction, split sizes, one-hot depth):
  // must be constant at import. Throws kUnsupported that names the operand and says how to give it (`--const
  // NAME=VALUES`).
  std::vector<int64_t> structural_ints(size_t input_index) const;

  [[noreturn]] void refuse(
      const std::string& reason) const;  // kUnsupported: operator, opset, node, reason, what to do
  [[noreturn]] void invalid(const std::string& reason) const;  // kInvalidModel

  GraphBuilder& builder() { return builder_; }
  const ModelNode& node() const { return node_; }

 private:
  GraphBuilder& builder_;
  const ModelNode& node_;
  int64_t opset_;
};

// Table of import functions, one file per operator group under frontend/onnx/ops/, each with a function
// `std::vector<OperatorImport> NAME_imports()`.
struct OperatorImport {
  const char* domain;  // "" = ai.onnx, "com.microsoft", ...
  const char* op_type;
  int64_t since;  // first opset of the domain that this function serves; the entry with the largest since <=
                  // opset is taken
  void (*import)(NodeContext&);
};
// nullptr when thrice has none. Built once from all groups (ops/registry.cc).
const OperatorImport* find_import(const std::string& domain, const std::string& op_type, int64_t opset);
std::vector<OperatorImport> all_imports();

}  // namespace thrice::frontend::onnx
