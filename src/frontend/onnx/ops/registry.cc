// The table of all import functions, built once.
#include <map>
#include <utility>

#include "frontend/onnx/ops/groups.h"

namespace thrice::frontend::onnx {

std::vector<OperatorImport> all_imports() {
  std::vector<OperatorImport> all;
  for (const auto& group : {activation_imports,
                            attention_imports,
                            cast_imports,
                            contrib_imports,
                            contrib_attention_imports,
                            contrib_quantized_imports,
                            control_imports,
                            convolution_imports,
                            einsum_imports,
                            elementwise_imports,
                            generate_imports,
                            host_imports,
                            image_imports,
                            index_imports,
                            layout_imports,
                            linear_attention_imports,
                            loss_imports,
                            ml_imports,
                            normalization_imports,
                            optimizer_imports,
                            pool_imports,
                            product_imports,
                            quantize_imports,
                            random_imports,
                            recurrent_imports,
                            reduction_imports,
                            sequence_imports,
                            shape_imports,
                            signal_imports,
                            softmax_imports}) {
    const std::vector<OperatorImport> imports = group();
    all.insert(all.end(), imports.begin(), imports.end());
  }
  return all;
}

const OperatorImport* find_import(const std::string& domain, const std::string& op_type, int64_t opset) {
  using Key = std::pair<std::string, std::string>;
  static const std::map<Key, std::vector<OperatorImport>> table = [] {
    std::map<Key, std::vector<OperatorImport>> made;
    for (const OperatorImport& import : all_imports())
      made[{import.domain, import.op_type}].push_back(import);
    return made;
  }();
  const auto found = table.find({domain == "ai.onnx" ? "" : domain, op_type});
  if (found == table.end()) return nullptr;
  const OperatorImport* best = nullptr;
  for (const OperatorImport& import : found->second)
    if (import.since <= opset && (best == nullptr || import.since > best->since)) best = &import;
  return best;
}

}  // namespace thrice::frontend::onnx
