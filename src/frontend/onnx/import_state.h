// What all graphs of one import share.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "frontend/import.h"
#include "frontend/onnx/model.h"

namespace thrice::frontend::onnx {

// Guards against files that unfold without end: functions that call each other, bodies that are typed again.
// The largest unrolled models have some 100 000 nodes.
constexpr int64_t kMaxImportedNodes = int64_t{1} << 18;
constexpr int kMaxImportDepth = 64;

struct ImportState {
  const Model& model;
  const ImportOptions& options;
  int64_t num_symbols = 0;        // for fresh names
  std::set<std::string> symbols;  // names in use
  int64_t num_imported = 0;
  int depth = 0;                      // of functions and bodies
  std::vector<std::string> refusals;  // kUnsupported, one a node
  // Per open function or body: versions of the operator sets, and what attribute references mean.
  std::vector<const std::map<std::string, int64_t>*> opsets;
  std::vector<const std::map<std::string, ModelAttribute>*> references;
};

// Set in place of a value whose node was refused: its consumers are skipped, so that one message can list
// every unsupported operator.
constexpr ir::ValueId kRefusedValue = -2;
struct RefusedOperand {};  // thrown by resolve() for such a name

}  // namespace thrice::frontend::onnx
