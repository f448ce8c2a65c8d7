// The whole model at once: verified against float64, timed beside the original.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "exec/executor.h"
#include "flow/progress.h"
#include "ir/compare.h"
#include "measure/timing.h"
#include "transform/pack_tokens.h"

namespace thrice::flow {

// "batch=1 width=320"; empty where nothing is symbolic.
std::string bindings_text(const ir::Bindings& bindings);

struct ModelCheck {
  bool verified = false;
  double max_error = 0, error_limit = 0;  // of the worst output over all cases: the one nearest to its limit
  std::string reason;                     // of the first failure
  std::vector<std::string> notes;         // extents that were tried, or skipped and why
};
// What a packed model was made of.
struct PaddedModel {
  std::shared_ptr<const ir::Graph> graph;
  transform::Packing packing;
};
// Compares `best` with the float64 oracle at the bindings (normal and uniform inputs) and, where symbols are
// free, at shorter lengths and at those of `also`. The limit allows what the ordinary float32 operators
// (`original`) get on the same inputs (numerics.md).
ModelCheck check_model(exec::Executor& best, exec::Executor& original, const ir::Bindings& bindings,
                       uint64_t seed, const Listener& listener, const std::vector<ir::Bindings>& also = {});
// The same for a packed model: the oracle evaluates the padded one, on sequences of one position, of all, of
// drawn lengths, on masks with holes and a sequence of padding alone; what is no padding is compared.
ModelCheck check_packed_model(exec::Executor& best, exec::Executor& original, const PaddedModel& padded,
                              const ir::Bindings& bindings, uint64_t seed, const Listener& listener);

// The error that a model's limit is stated by, where the original's alone would decide: `original`, as it ran
// on the device, but at least what ordinary float32 costs on the host (the original may have been lucky) and
// at most twice that (a broken kernel in the original must not loosen the limit).
double ordinary_error(double original, double host);

// Interleaved: original, best, original, best ...
std::vector<measure::Timing> time_models(backend::Device& device, exec::Executor& original,
                                         exec::Executor& best, const ir::Bindings& bindings, uint64_t seed);

// One execution of several enqueued back to back, at the clocks after a rest and at those of lasting load.
struct LoadTimes {
  measure::Timing burst, sustained;
};
LoadTimes time_loads(backend::Device& device, exec::Executor& executor, const ir::Bindings& bindings,
                     uint64_t seed);

// Time of every step of one execution, by (segment, step): medians of a few runs.
std::vector<std::vector<double>> step_times(exec::Executor& executor, const ir::Bindings& bindings,
                                            uint64_t seed);

}  // namespace thrice::flow
