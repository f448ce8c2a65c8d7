// RNN, GRU, LSTM: the products with the inputs are one matrix product ahead of the loop over time.
#include "frontend/onnx/ops/groups.h"
#include "frontend/onnx/ops/recurrent_cell.h"
#include "frontend/onnx/ops/time_loop.h"

namespace thrice::frontend::onnx {
namespace {

struct Direction {
  Cell cell;
  bool reverse;
  Expr x;                     // [steps, batch, gates * hidden]
  std::vector<Expr> state;    // initial, each [batch, hidden]
  std::optional<Expr> valid;  // bool [steps, batch, 1]: false behind the end of a sequence
};

// Behind the end of its sequence an entry keeps its state and puts out zeros.
TimeStep run(const Direction& d) {
  TimeLoop loop{{d.x}, d.state, d.cell.values(), d.reverse};
  if (d.valid) loop.sequences.push_back(*d.valid);
  return over_time(loop, [&d](const std::vector<Expr>& fixed, const std::vector<Expr>& state,
                              const std::vector<Expr>& now) {
    const std::vector<Expr> next = step(d.cell.with(fixed), now[0], state);
    if (!d.valid) return TimeStep{next, next[0]};
    TimeStep masked{{}, where(now[1], next[0], 0.0)};
    for (size_t i = 0; i < next.size(); ++i) masked.carried.push_back(where(now[1], next[i], state[i]));
    return masked;
  });
}

Expr one_direction(const Expr& value, int64_t direction) {
  return squeeze(slice(value, 0, direction, direction + 1), {0});
}

// Operands: X, W, R, B, sequence_lens, initial_h, and for LSTM initial_c, P.
Direction read_direction(NodeContext& ctx, CellKind kind, const Expr& x, int64_t direction,
                         int64_t directions, const std::vector<std::string>& defaults) {
  const int64_t gates = gate_count(kind);
  const Expr w = one_direction(in(ctx, 1), direction), r = one_direction(in(ctx, 2), direction);
  Cell cell;
  cell.kind = kind;
  if (!r.dim(1).is_const()) ctx.refuse("the hidden size is not known");
  cell.hidden = r.dim(1).value();
  if (ctx.int_attr("hidden_size", cell.hidden) != cell.hidden) ctx.invalid("hidden_size and R differ");
  cell.clip = ctx.float_attr("clip", 0.0);
  cell.input_forget = ctx.int_attr("input_forget", 0) != 0;
  cell.linear_before_reset = ctx.int_attr("linear_before_reset", 0) != 0;
  cell.activations = read_activations(ctx, static_cast<size_t>(direction) * defaults.size(), defaults,
                                      static_cast<size_t>(directions));
  cell.recurrence = r;
  const int64_t n = cell.hidden;
  Expr product = matmul(x, w, false, true);
  if (ctx.has_input(3)) {
    const Expr bias = one_direction(in(ctx, 3), direction);
    const Expr of_w = slice(bias, 0, 0, gates * n), of_r = slice(bias, 0, gates * n, 2 * gates * n);
    if (kind == CellKind::kGru && cell.linear_before_reset) {
      cell.candidate_bias = slice(of_r, 0, 2 * n, 3 * n);
      product =
          product +
          concat({slice(of_w, 0, 0, 2 * n) + slice(of_r, 0, 0, 2 * n), slice(of_w, 0, 2 * n, 3 * n)}, 0);
    } else {
      product = product + (of_w + of_r);
    }
  }
  const bool batch_first = ctx.int_attr("layout", 0) != 0;
  std::vector<Expr> state;
  for (size_t i = 5; i < (kind == CellKind::kLstm ? 7u : 6u); ++i) {
    if (!ctx.has_input(i)) {
      state.push_back(filled(ctx, x.dtype(), 0, {x.dim(1), n}));
      continue;
    }
    const Expr initial = in(ctx, i);
    state.push_back(batch_first ? squeeze(slice(initial, 1, direction, direction + 1), {1})
                                : one_direction(initial, direction));
  }
  if (kind == CellKind::kLstm && ctx.has_input(7)) {
    const Expr p = one_direction(in(ctx, 7), direction);
    for (int64_t i = 0; i < 3; ++i) cell.peepholes.push_back(slice(p, 0, i * n, (i + 1) * n));
  }
  const std::string order = ctx.string_attr("direction", "forward");
  return {cell, order == "reverse" || direction == 1, product, state, std::nullopt};
}

void recurrent(NodeContext& ctx, CellKind kind, const std::vector<std::string>& defaults) {
  Expr x = in(ctx, 0);
  if (x.rank() != 3 || in(ctx, 1).rank() != 3 || in(ctx, 2).rank() != 3)
    ctx.invalid("X, W and R must have rank 3");
  const bool batch_first = ctx.int_attr("layout", 0) != 0;
  if (batch_first) x = transpose(x, {1, 0, 2});
  const std::string order = ctx.string_attr("direction", "forward");
  if (order != "forward" && order != "reverse" && order != "bidirectional")
    ctx.invalid("direction " + order + " is not known");
  const int64_t directions = order == "bidirectional" ? 2 : 1;
  std::optional<Expr> valid;
  if (ctx.has_input(4)) {
    const Expr lengths = cast(in(ctx, 4), DType::kI64);
    valid = less(iota_along(ctx, x.dim(0), 0, 3), along(lengths, 1, 3));
  }
  std::vector<Expr> ys;
  std::vector<std::vector<Expr>> states(kind == CellKind::kLstm ? 2 : 1);
  for (int64_t i = 0; i < directions; ++i) {
    Direction d = read_direction(ctx, kind, x, i, directions, defaults);
    d.valid = valid;
    const TimeStep result = run(d);
    ys.push_back(unsqueeze(*result.y, {batch_first ? 2 : 1}));
    for (size_t s = 0; s < states.size(); ++s)
      states[s].push_back(unsqueeze(result.carried[s], {batch_first ? 1 : 0}));
  }
  // y is [steps, batch, directions, hidden] while batch_first, else [steps, directions, batch, hidden].
  const Expr y = concat(ys, batch_first ? 2 : 1);
  out(ctx, 0, batch_first ? transpose(y, {1, 0, 2, 3}) : y);
  for (size_t s = 0; s < states.size(); ++s) out(ctx, 1 + s, concat(states[s], batch_first ? 1 : 0));
}

void rnn(NodeContext& ctx) { recurrent(ctx, CellKind::kRnn, {"Tanh"}); }
void gru(NodeContext& ctx) { recurrent(ctx, CellKind::kGru, {"Sigmoid", "Tanh"}); }
void lstm(NodeContext& ctx) { recurrent(ctx, CellKind::kLstm, {"Sigmoid", "Tanh", "Tanh"}); }

}  // namespace

std::vector<OperatorImport> recurrent_imports() {
  return {
      {"", "RNN", 7, rnn},
      {"", "GRU", 7, gru},
      {"", "LSTM", 7, lstm},
  };
}

}  // namespace thrice::frontend::onnx
