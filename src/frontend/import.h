// Model file -> Graph.
#pragma once
#include <map>
#include <span>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace thrice::frontend {

struct ImportOptions {
  std::map<std::string, ir::Tensor>
      known_inputs;  // graph inputs fixed at import (`--const axes=1,2`): they become constants
  std::map<std::string, std::vector<ir::Dim>>
      input_shapes;                        // overrides of the model's own (`--shape x=1,3,48,width`)
  std::map<std::string, int64_t> symbols;  // fixes a named symbol to a number
  bool allow_slow =
      false;  // unsupported operators become host_function nodes where the interpreter knows them
  bool random_weights = false;  // fill stripped weights (docs/stripped_models.md)
  uint64_t weight_seed = 0;
  size_t max_model_bytes = size_t{8} << 30;  // refuse larger files
};

// Reads an ONNX file (external data stays inside its folder), imports and infers it. The graph is canonical
// enough to run; transform/ improves it. Errors: kNotFound, kIo, kInvalidModel (truncated, cyclic, ill-typed:
// names the node), kUnsupported (all unsupported operators in one message: name, opset, node, what to do).
ir::Graph import_model(const std::string& path, const ImportOptions& options = {});
ir::Graph import_model_bytes(std::span<const std::byte> bytes, const std::string& folder,
                             const ImportOptions& options = {});

// Writes a structure-only copy of the model (docs/stripped_models.md).
void strip_model(const std::string& path, const std::string& output);

}  // namespace thrice::frontend
