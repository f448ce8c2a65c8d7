// Operators that move elements between depth, space and time.
#include "frontend/onnx/ops/expr.h"
#include "frontend/onnx/ops/groups.h"

namespace thrice::frontend::onnx {
namespace {

void depth_to_space(NodeContext& ctx) {
  const Expr x = in(ctx, 0);
  const int64_t b = ctx.int_attr("blocksize");
  if (x.rank() != 4 || b < 1) ctx.invalid("needs a rank 4 operand and a positive blocksize");
  const Dim n = x.dim(0), c = ir::floor_div(x.dim(1), b * b), h = x.dim(2), w = x.dim(3);
  const bool column_first = ctx.string_attr("mode", "DCR") == "CRD";
  const Expr split = reshape(x, column_first ? ir::Shape{n, c, b, b, h, w} : ir::Shape{n, b, b, c, h, w});
  const std::vector<int64_t> perm =
      column_first ? std::vector<int64_t>{0, 1, 4, 2, 5, 3} : std::vector<int64_t>{0, 3, 4, 1, 5, 2};
  out(ctx, 0, reshape(transpose(split, perm), {n, c, h * b, w * b}));
}

void space_to_depth(NodeContext& ctx) {
  const Expr x = in(ctx, 0);
  const int64_t b = ctx.int_attr("blocksize");
  if (x.rank() != 4 || b < 1) ctx.invalid("needs a rank 4 operand and a positive blocksize");
  const Dim n = x.dim(0), c = x.dim(1), h = ir::floor_div(x.dim(2), b), w = ir::floor_div(x.dim(3), b);
  const bool column_first = ctx.string_attr("mode", "DCR") == "CRD";
  const Expr split = reshape(x, {n, c, h, b, w, b});
  const std::vector<int64_t> perm =
      column_first ? std::vector<int64_t>{0, 1, 3, 5, 2, 4} : std::vector<int64_t>{0, 3, 5, 1, 2, 4};
  out(ctx, 0, reshape(transpose(split, perm), {n, c * (b * b), h, w}));
}

// Each row is read backwards up to its length and forwards behind it.
void reverse_sequence(NodeContext& ctx) {
  const Expr x = in(ctx, 0);
  const int64_t time = ctx.axis(x.id(), ctx.int_attr("time_axis", 0));
  const int64_t batch = ctx.axis(x.id(), ctx.int_attr("batch_axis", 1));
  const int64_t rank = x.rank();
  const Expr length = along(cast(in(ctx, 1), DType::kI64), batch, rank);
  const Expr t = iota_along(ctx, x.dim(time), time, rank);
  const Expr source = where(less(t, length), length - 1.0 - t, t);
  out(ctx, 0, emit(Op::gather_elements, x, expand(source, x.shape()), {{"axis", time}}));
}

}  // namespace

std::vector<OperatorImport> layout_imports() {
  return {
      {"", "DepthToSpace", 1, depth_to_space},
      {"", "SpaceToDepth", 1, space_to_depth},
      {"", "ReverseSequence", 10, reverse_sequence},
  };
}

}  // namespace thrice::frontend::onnx
