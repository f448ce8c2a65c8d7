// The groups of import functions; registry.cc joins them.
#pragma once
#include <vector>

#include "frontend/onnx/node_context.h"

namespace thrice::frontend::onnx {

std::vector<OperatorImport> activation_imports();
std::vector<OperatorImport> attention_imports();
std::vector<OperatorImport> cast_imports();
std::vector<OperatorImport> contrib_imports();
std::vector<OperatorImport> contrib_attention_imports();
std::vector<OperatorImport> contrib_quantized_imports();
std::vector<OperatorImport> convolution_imports();
std::vector<OperatorImport> einsum_imports();
std::vector<OperatorImport> elementwise_imports();
std::vector<OperatorImport> generate_imports();
std::vector<OperatorImport> host_imports();
std::vector<OperatorImport> image_imports();
std::vector<OperatorImport> index_imports();
std::vector<OperatorImport> layout_imports();
std::vector<OperatorImport> linear_attention_imports();
std::vector<OperatorImport> loss_imports();
std::vector<OperatorImport> ml_imports();
std::vector<OperatorImport> normalization_imports();
std::vector<OperatorImport> optimizer_imports();
std::vector<OperatorImport> pool_imports();
std::vector<OperatorImport> product_imports();
std::vector<OperatorImport> quantize_imports();
std::vector<OperatorImport> random_imports();
std::vector<OperatorImport> recurrent_imports();
std::vector<OperatorImport> reduction_imports();
std::vector<OperatorImport> sequence_imports();
std::vector<OperatorImport> shape_imports();
std::vector<OperatorImport> signal_imports();
std::vector<OperatorImport> softmax_imports();
std::vector<OperatorImport> control_imports();  // control.cc

}  // namespace thrice::frontend::onnx
