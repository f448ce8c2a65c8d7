// Concrete shapes and small integer values of one run, from the symbols that its inputs bind.
#pragma once
#include <optional>
#include <vector>

#include "ir/infer.h"

namespace thrice::exec {

// Lazily evaluates what is known of each value of a graph for one set of inputs. Symbolic shapes are
// evaluated at the bindings; where a symbol is not bound yet (a shape decided by an operand's value) the
// producing node is inferred concretely from the facts of its operands.
class RunFacts {
 public:
  explicit RunFacts(const ir::Graph& graph);

  // A graph input: checks dtype, rank and extents against the model and binds its symbols. Throws
  // kInvalidArgument naming the input.
  void set_input(size_t i, DType dtype, const std::vector<int64_t>& shape);
  // After all inputs are set: extents that depend on other inputs' symbols ("past + 1") fit too. Throws as
  // set_input does.
  void check_inputs();
  // A value computed on the host or by a control step: binds the symbols of its shape. `host` may be null; it
  // must outlive the run.
  void set_value(ir::ValueId v, DType dtype, const std::vector<int64_t>& shape, const ir::Tensor* host);
  void set_host(ir::ValueId v, const ir::Tensor* host);  // the value itself, for shape operands

  const ir::Fact& fact(ir::ValueId v);
  std::vector<int64_t> shape(ir::ValueId v);
  // The value as integers where inference knows it or the host has it.
  std::optional<std::vector<int64_t>> ints(ir::ValueId v);
  const ir::Bindings& bindings() const { return bindings_; }

 private:
  ir::Fact infer(ir::ValueId v);
  void unify(ir::ValueId v, const std::vector<int64_t>& shape, const std::string& what);
  const ir::Graph& graph_;
  ir::Bindings bindings_;
  bool has_unsolved_ = false;  // an input has an extent whose symbols were not bound yet
  std::vector<std::optional<ir::Fact>> facts_;
  std::vector<const ir::Tensor*> hosts_;
};

}  // namespace thrice::exec
