#include "frontend/onnx/ops/time_loop.h"

#include <algorithm>

#include "frontend/onnx/graph_builder.h"

namespace thrice::frontend::onnx {
namespace {

constexpr int64_t kMaxWrittenOut = 64;  // steps; each is about a dozen nodes

TimeStep written_out(const TimeLoop& loop, const StepFunction& step, int64_t steps) {
  TimeStep state{loop.carried, std::nullopt};
  std::vector<Expr> outputs;
  for (int64_t i = 0; i < steps; ++i) {
    const int64_t t = loop.reverse ? steps - 1 - i : i;
    std::vector<Expr> now;
    for (const Expr& sequence : loop.sequences) now.push_back(squeeze(slice(sequence, 0, t, t + 1), {0}));
    state = step(loop.fixed, state.carried, now);
    outputs.push_back(unsqueeze(*state.y, {0}));
  }
  if (loop.reverse) std::reverse(outputs.begin(), outputs.end());
  return {state.carried, concat(outputs, 0)};
}

TimeStep scanned(const TimeLoop& loop, const StepFunction& step) {
  NodeContext& ctx = loop.sequences[0].ctx();
  GraphBuilder body(ctx.builder());
  NodeContext inner(body, ctx.node(), ctx.opset());
  std::vector<Expr> fixed, state, now;
  std::vector<ValueId> carried, sequences;
  for (const Expr& initial : loop.carried) {
    state.emplace_back(inner, body.add_input(ctx.type(initial.id()), "state"));
    carried.push_back(initial.id());
  }
  for (const Expr& sequence : loop.sequences) {
    const ir::Type& type = ctx.type(sequence.id());
    now.emplace_back(
        inner, body.add_input({type.dtype, ir::Shape(type.shape.begin() + 1, type.shape.end())}, "now"));
    sequences.push_back(sequence.id());
  }
  for (const Expr& value : loop.fixed) fixed.emplace_back(inner, body.capture(value.id()));
  const TimeStep next = step(fixed, state, now);
  std::vector<ValueId> results;
  for (const Expr& value : next.carried) results.push_back(value.id());
  results.push_back(emit(Op::identity, *next.y).id());  // y may be the state itself
  ScanLayout layout;
  layout.input_directions.assign(sequences.size(), loop.reverse ? 1 : 0);
  layout.output_directions = {loop.reverse ? 1 : 0};
  const std::vector<ValueId> last = emit_scan(ctx, body, carried, sequences, results, layout);
  TimeStep result{{}, Expr(ctx, last.back())};
  for (size_t i = 0; i + 1 < last.size(); ++i) result.carried.emplace_back(ctx, last[i]);
  return result;
}

}  // namespace

TimeStep over_time(const TimeLoop& loop, const StepFunction& step) {
  const Dim steps = loop.sequences.at(0).dim(0);
  if (steps.is_const() && steps.value() >= 1 && steps.value() <= kMaxWrittenOut)
    return written_out(loop, step, steps.value());
  return scanned(loop, step);
}

}  // namespace thrice::frontend::onnx
