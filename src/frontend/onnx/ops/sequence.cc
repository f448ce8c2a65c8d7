// Sequences and optionals have no place among tensors: only what a tensor operand already decides is built.
#include "frontend/onnx/ops/expr.h"
#include "frontend/onnx/ops/groups.h"

namespace thrice::frontend::onnx {
namespace {

void sequence(NodeContext& ctx) {
  ctx.refuse("values that are sequences of tensors; rewrite the model with Split, Concat or Gather");
}

void optional(NodeContext& ctx) { ctx.refuse("values that are optionals; give the tensor itself"); }

// With a tensor operand (opset 18) there is always an element.
void has_element(NodeContext& ctx) {
  const bool present = ctx.num_inputs() > 0 && ctx.has_input(0);
  out(ctx, 0, number(ctx, DType::kBool, present ? 1 : 0));
}

void get_element(NodeContext& ctx) { out(ctx, 0, emit(Op::identity, in(ctx, 0))); }

}  // namespace

std::vector<OperatorImport> sequence_imports() {
  std::vector<OperatorImport> imports;
  for (const char* op_type :
       {"SequenceConstruct", "SequenceEmpty", "SequenceInsert", "SequenceErase", "SequenceAt",
        "SequenceLength", "SequenceMap", "SplitToSequence", "ConcatFromSequence"})
    imports.push_back({"", op_type, 11, sequence});
  imports.push_back({"", "Optional", 15, optional});
  imports.push_back({"", "OptionalHasElement", 15, has_element});
  imports.push_back({"", "OptionalGetElement", 15, get_element});
  return imports;
}

}  // namespace thrice::frontend::onnx
