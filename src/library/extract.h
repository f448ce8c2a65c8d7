// Operators of the library out of models and of what a plan runs.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "library/entry.h"
#include "plan/planner.h"

namespace thrice::library {

// An operator as a plan runs it. Extents are those of the plan (low = high = typical), networks is empty.
Entry entry_of(const plan::PlannedWorkload& planned);

struct ModelRanges {
  std::map<std::string, Range> symbols;  // of each symbol of the model's inputs
  // Symbols that count samples (batch, users): they make no operator one of variable length.
  std::set<std::string> sample_symbols;
};

// Every distinct operator that runs on the device, of the model as it is (each operator by itself, after the
// transforms), sorted by id. `network` is its name. Errors: kInvalidArgument (a symbol without a range).
std::vector<Entry> operators_of(const ir::Graph& graph, const std::string& network,
                                const ModelRanges& ranges);

}  // namespace thrice::library
