// One step of RNN, GRU and LSTM.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "frontend/onnx/ops/expr.h"

namespace thrice::frontend::onnx {

using Activation = std::function<Expr(const Expr&)>;

// Activation functions of one direction: `count` of them, beginning with `first` of the attribute
// `activations`; `defaults` where the attribute is absent. Parameters are taken from activation_alpha and
// activation_beta in order.
std::vector<Activation> read_activations(NodeContext& ctx, size_t first,
                                         const std::vector<std::string>& defaults, size_t directions);

enum class CellKind { kRnn, kGru, kLstm };
int64_t gate_count(CellKind kind);

// Parameters of one direction.
struct Cell {
  CellKind kind = CellKind::kRnn;
  int64_t hidden = 0;
  double clip = 0;  // 0 = none
  bool input_forget = false, linear_before_reset = false;
  std::vector<Activation> activations;
  std::optional<Expr> recurrence;      // [gates * hidden, hidden]
  std::optional<Expr> candidate_bias;  // [hidden]: GRU's own recurrence bias under linear_before_reset
  std::vector<Expr> peepholes;         // LSTM: input, output, forget, each [hidden]; or none

  // The values among the parameters, and the same cell with them exchanged (inside a loop's body).
  std::vector<Expr> values() const;
  Cell with(const std::vector<Expr>& values) const;
};

// x: this step's X * W^T with the biases added, [batch, gates * hidden]. state: h, and c for LSTM, each
// [batch, hidden]. Returns the next state.
std::vector<Expr> step(const Cell& cell, const Expr& x, const std::vector<Expr>& state);

}  // namespace thrice::frontend::onnx
