// Transposing maps: an input's neighbours are not the output's, so tiles turn in shared memory (CUDA).
#pragma once
#include <optional>

#include "family/emitter.h"

namespace thrice::family {

// Runs of the output's axes: `across` [b, b_end) follow each other in the transposed inputs, `along` [a,
// rank) in the output.
struct Turn {
  size_t b = 0, b_end = 0, a = 0;
  std::vector<ir::ValueId> inputs;  // those that turn
};

// The turn of output value `y` with the longest runs; nullopt where no input turns, or one is read twice.
std::optional<Turn> find_turn(const Workload& workload, const std::vector<size_t>& group);

// Bytes of shared memory that its kernel takes.
int64_t turn_shared_bytes(const ir::Graph& graph, const Turn& turn);

// Writes outputs `group` (positions in graph.outputs, of one shape) tile by tile.
KernelDraft turn_kernel(ProgramDraft& draft, const std::string& symbol, const std::vector<size_t>& group,
                        const Turn& turn, int64_t threads);

}  // namespace thrice::family
