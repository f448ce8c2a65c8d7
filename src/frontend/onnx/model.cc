#include "frontend/onnx/model.h"

namespace thrice::frontend::onnx {

const ModelAttribute* ModelNode::find(const std::string& attribute) const {
  for (const auto& candidate : attributes) {
    if (candidate.name == attribute) return &candidate;
  }
  return nullptr;
}

std::string ModelNode::label() const {
  if (!name.empty()) return name;
  for (const auto& output : outputs) {
    if (!output.empty()) return output;
  }
  return op_type;
}

std::string canonical_domain(const std::string& domain) { return domain == "ai.onnx" ? "" : domain; }

}  // namespace thrice::frontend::onnx
