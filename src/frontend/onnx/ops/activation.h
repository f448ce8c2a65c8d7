// Activation formulas that several operators share (recurrent cells, contrib operators).
#pragma once
#include "frontend/onnx/ops/expr.h"

namespace thrice::frontend::onnx {

Expr softplus(const Expr& x);
Expr softsign(const Expr& x);
Expr elu(const Expr& x, double alpha);
Expr leaky_relu(const Expr& x, double alpha);
Expr hard_sigmoid(const Expr& x, double alpha, double beta);
Expr gelu(const Expr& x);
Expr gelu_tanh(const Expr& x);
Expr swish(const Expr& x, double alpha);

}  // namespace thrice::frontend::onnx
