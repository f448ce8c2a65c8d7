#include "frontend/onnx/ops/recurrent_cell.h"

#include "frontend/onnx/ops/activation.h"

namespace thrice::frontend::onnx {
namespace {

std::string lowered(std::string text) {
  for (char& c : text) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return text;
}

// How many of alpha, beta an activation takes, and their defaults.
struct Parameters {
  int count;
  double alpha, beta;
};
Parameters parameters_of(NodeContext& ctx, const std::string& name) {
  if (name == "relu" || name == "tanh" || name == "sigmoid" || name == "softsign" || name == "softplus")
    return {0, 0, 0};
  if (name == "leakyrelu") return {1, 0.01, 0};
  if (name == "thresholdedrelu" || name == "elu") return {1, 1.0, 0};
  if (name == "affine") return {2, 1.0, 0.0};
  if (name == "scaledtanh") return {2, 1.0, 1.0};
  if (name == "hardsigmoid") return {2, 0.2, 0.5};
  ctx.invalid("activation " + name + " is not known");
}

Activation activation(const std::string& name, double alpha, double beta) {
  if (name == "relu") return [](const Expr& x) { return emit(Op::relu, x); };
  if (name == "tanh") return [](const Expr& x) { return emit(Op::tanh, x); };
  if (name == "sigmoid") return [](const Expr& x) { return emit(Op::sigmoid, x); };
  if (name == "softsign") return softsign;
  if (name == "softplus") return softplus;
  if (name == "leakyrelu") return [=](const Expr& x) { return leaky_relu(x, alpha); };
  if (name == "thresholdedrelu") return [=](const Expr& x) { return where(greater(x, alpha), x, 0.0); };
  if (name == "elu") return [=](const Expr& x) { return elu(x, alpha); };
  if (name == "affine") return [=](const Expr& x) { return alpha * x + beta; };
  if (name == "scaledtanh") return [=](const Expr& x) { return alpha * emit(Op::tanh, beta * x); };
  return [=](const Expr& x) { return hard_sigmoid(x, alpha, beta); };
}

Expr clipped(const Cell& cell, const Expr& x) { return cell.clip > 0 ? clamp(x, -cell.clip, cell.clip) : x; }

Expr gate(const Cell& cell, const Expr& all, int64_t index) {
  return slice(all, 1, index * cell.hidden, (index + 1) * cell.hidden);
}

std::vector<Expr> rnn_step(const Cell& cell, const Expr& x, const std::vector<Expr>& state) {
  return {cell.activations[0](clipped(cell, x + matmul(state[0], *cell.recurrence, false, true)))};
}

// Gates z, r, h.
std::vector<Expr> gru_step(const Cell& cell, const Expr& x, const std::vector<Expr>& state) {
  const Expr& h = state[0];
  const int64_t n = cell.hidden;
  const Activation &f = cell.activations[0], &g = cell.activations[1];
  const auto candidate = [&](const Expr& pre, const Expr& z) {
    const Expr next = g(clipped(cell, pre));
    return std::vector<Expr>{(1.0 - z) * next + z * h};
  };
  if (cell.linear_before_reset) {
    const Expr recurrent = matmul(h, *cell.recurrence, false, true);
    const Expr z = f(clipped(cell, gate(cell, x, 0) + gate(cell, recurrent, 0)));
    const Expr r = f(clipped(cell, gate(cell, x, 1) + gate(cell, recurrent, 1)));
    Expr inner = gate(cell, recurrent, 2);
    if (cell.candidate_bias) inner = inner + *cell.candidate_bias;
    return candidate(gate(cell, x, 2) + r * inner, z);
  }
  const Expr recurrent = matmul(h, slice(*cell.recurrence, 0, 0, 2 * n), false, true);
  const Expr z = f(clipped(cell, gate(cell, x, 0) + gate(cell, recurrent, 0)));
  const Expr r = f(clipped(cell, gate(cell, x, 1) + gate(cell, recurrent, 1)));
  const Expr inner = matmul(r * h, slice(*cell.recurrence, 0, 2 * n, 3 * n), false, true);
  return candidate(gate(cell, x, 2) + inner, z);
}

// Gates i, o, f, c; the output gate's peephole sees the new cell state.
std::vector<Expr> lstm_step(const Cell& cell, const Expr& x, const std::vector<Expr>& state) {
  const Expr all = x + matmul(state[0], *cell.recurrence, false, true);
  const Expr& c = state[1];
  const Activation &f = cell.activations[0], &g = cell.activations[1], &h = cell.activations[2];
  const auto peeped = [&](int64_t index, size_t peephole, const Expr& memory) {
    const Expr pre = gate(cell, all, index);
    return f(clipped(cell, cell.peepholes.empty() ? pre : pre + cell.peepholes[peephole] * memory));
  };
  const Expr i = peeped(0, 0, c);
  const Expr forget = cell.input_forget ? 1.0 - i : peeped(2, 2, c);
  const Expr next = forget * c + i * g(clipped(cell, gate(cell, all, 3)));
  return {peeped(1, 1, next) * h(next), next};
}

}  // namespace

int64_t gate_count(CellKind kind) { return kind == CellKind::kRnn ? 1 : kind == CellKind::kGru ? 3 : 4; }

std::vector<Activation> read_activations(NodeContext& ctx, size_t first,
                                         const std::vector<std::string>& defaults, size_t directions) {
  std::vector<std::string> names =
      ctx.has_attr("activations") ? ctx.strings_attr("activations") : std::vector<std::string>{};
  if (names.empty())
    for (size_t d = 0; d < directions; ++d) names.insert(names.end(), defaults.begin(), defaults.end());
  if (names.size() != directions * defaults.size()) ctx.invalid("activations has the wrong length");
  const auto alphas =
      ctx.has_attr("activation_alpha") ? ctx.floats_attr("activation_alpha") : std::vector<double>{};
  const auto betas =
      ctx.has_attr("activation_beta") ? ctx.floats_attr("activation_beta") : std::vector<double>{};
  size_t next_alpha = 0, next_beta = 0;
  std::vector<Activation> functions;
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string name = lowered(names[i]);
    Parameters p = parameters_of(ctx, name);
    if (p.count >= 1 && next_alpha < alphas.size()) p.alpha = alphas[next_alpha++];
    if (p.count >= 2 && next_beta < betas.size()) p.beta = betas[next_beta++];
    if (i >= first && i < first + defaults.size()) functions.push_back(activation(name, p.alpha, p.beta));
  }
  return functions;
}

std::vector<Expr> Cell::values() const {
  std::vector<Expr> values = peepholes;
  values.push_back(*recurrence);
  if (candidate_bias) values.push_back(*candidate_bias);
  return values;
}

Cell Cell::with(const std::vector<Expr>& values) const {
  Cell cell = *this;
  cell.peepholes.clear();
  for (size_t i = 0; i < peepholes.size(); ++i) cell.peepholes.push_back(values[i]);
  cell.recurrence = values[peepholes.size()];
  if (candidate_bias) cell.candidate_bias = values[peepholes.size() + 1];
  return cell;
}

std::vector<Expr> step(const Cell& cell, const Expr& x, const std::vector<Expr>& state) {
  switch (cell.kind) {
    case CellKind::kRnn:
      return rnn_step(cell, x, state);
    case CellKind::kGru:
      return gru_step(cell, x, state);
    case CellKind::kLstm:
      return lstm_step(cell, x, state);
  }
  return {};
}

}  // namespace thrice::frontend::onnx
