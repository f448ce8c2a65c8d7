// Training losses.
#include "frontend/onnx/ops/expr.h"
#include "frontend/onnx/ops/groups.h"
#include "frontend/onnx/ops/softmax.h"

namespace thrice::frontend::onnx {
namespace {

// -log_probability[n, target, d...] * weight[target]; elements whose target is ignore_index count nothing.
Expr likelihood_loss(NodeContext& ctx, const Expr& log_probability, const Expr& target, size_t weight_input) {
  const std::string reduction = ctx.string_attr("reduction", "mean");
  const Expr classes = cast(target, DType::kI64);
  const DType dtype = log_probability.dtype();
  Expr index = classes, counted = filled(ctx, dtype, 1, target.shape());
  if (ctx.has_attr("ignore_index")) {
    const Expr ignored = equal(classes, static_cast<double>(ctx.int_attr("ignore_index")));
    index = where(ignored, 0.0, classes);
    counted = where(ignored, 0.0, counted);
  }
  const bool weighted = ctx.has_input(weight_input);
  if (weighted) counted = gather(cast(in(ctx, weight_input), dtype), index, 0) * counted;
  const Expr picked =
      squeeze(emit(Op::gather_elements, log_probability, unsqueeze(index, {1}), {{"axis", int64_t{1}}}), {1});
  // A class of weight 0 counts nothing even where its probability is 0.
  const Expr loss = where(equal(counted, 0.0), 0.0, -picked * counted);
  if (reduction == "none") return loss;
  const std::vector<int64_t> all = axes_from(0, loss.rank());
  const Expr total = reduce(loss, "sum", all, false);
  if (reduction == "sum") return total;
  if (reduction != "mean") ctx.invalid("reduction " + reduction + " is not known");
  return total / reduce(counted, "sum", all, false);
}

void negative_log_likelihood(NodeContext& ctx) {
  const Expr x = in(ctx, 0);
  if (x.rank() < 2) ctx.invalid("the operand must have rank 2 or more");
  out(ctx, 0, cast(likelihood_loss(ctx, widened(x), in(ctx, 1), 2), x.dtype()));
}

void softmax_cross_entropy(NodeContext& ctx) {
  const Expr x = in(ctx, 0);
  if (x.rank() < 2) ctx.invalid("the operand must have rank 2 or more");
  const Expr log_probability = log_softmax(widened(x), {1});
  out(ctx, 0, cast(likelihood_loss(ctx, log_probability, in(ctx, 1), 2), x.dtype()));
  out(ctx, 1, cast(log_probability, x.dtype()));
}

}  // namespace

std::vector<OperatorImport> loss_imports() {
  return {
      {"", "NegativeLogLikelihoodLoss", 12, negative_log_likelihood},
      {"", "SoftmaxCrossEntropyLoss", 12, softmax_cross_entropy},
  };
}

}  // namespace thrice::frontend::onnx
