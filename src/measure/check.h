// Is a candidate right? Compared with the float64 oracle on fresh inputs, with poisoned outputs and guard
// zones.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "artifact/kernel.h"
#include "backend/backend.h"
#include "family/in_place.h"
#include "ir/compare.h"
#include "ir/inputs.h"

namespace thrice::measure {

// Oracle answers of one workload at one set of facts, by (kind, seed): computed once a round, after the first
// candidate that needs them has launched. The last fourteen are kept.
class Oracle {
 public:
  Oracle(const ir::Workload& workload, std::vector<ir::Fact> facts);
  ~Oracle();
  struct Case {
    std::vector<ir::Tensor> inputs;           // index-aligned with workload.graph.inputs
    std::vector<ir::ArrayPtr> outputs;        // float64
    std::vector<double> limits;               // per output (numerics.md)
    std::vector<std::vector<double>> bounds;  // per output: bound of each element; empty = none known
  };
  const std::vector<ir::Tensor>& inputs(ir::InputKind kind, uint64_t seed);
  // Bounds of elements cost as much again as the answer: screening leaves them out.
  const Case& answer(ir::InputKind kind, uint64_t seed, bool with_bounds = false);
  // The same for several (at most fourteen), small regions' side by side on all cores; larger ones', whose
  // operators fill the cores alone, when they are asked for.
  void answer_all(const std::vector<std::pair<ir::InputKind, uint64_t>>& cases, bool with_bounds);
  void forget_answers();  // gives their memory back; what was handed out is no longer valid
  const std::vector<ir::Fact>& facts() const;
  const ir::Bindings& bindings() const;  // symbol -> extent, of facts()

 private:
  struct State;
  std::unique_ptr<State> state_;
};

enum class Gate { kScreening, kFull };  // two kinds of input | all kinds and hidden seeds

// Where a trial is, told as it goes on: each has a limit of its own where somebody watches.
enum class Phase {
  kBuild,   // compiling; for OpenCL up to the end of a kernel's first launch, since drivers compile there too
  kDevice,  // launches that have not come back yet
  kTiming,  // such launches, timed: nothing else of ours should run
  kHost     // reading results, computing float64 answers
};
using PhaseListener = std::function<void(Phase)>;
Phase first_launch_phase(const target::DeviceSpec& device);

struct CheckOptions {
  Gate gate = Gate::kScreening;
  uint64_t seed = 1;
  bool fences = false;    // buffers end at unmapped memory where the device offers it: a read beyond faults
  PhaseListener entered;  // may be empty
  std::vector<family::Share> shares;  // outputs that lie where an input does
};
struct CheckResult {
  bool ok = false;
  double error = 0, error_limit = 0;  // the worst output's
  std::string reason;                 // empty when ok
};
// Runs the program's launches on the device for each input kind. Where all kinds of the gate leave an output
// without a number (only NaN and infinities, which must agree), positive inputs are drawn too; an output that
// still was never compared is wrong. Catches: wrong values, unwritten elements, writes beyond a buffer (guard
// zones), changed inputs, NaN. Errors: kLaunchFailed, kOutOfMemory (the device's); a wrong result is no
// error.
CheckResult check(backend::Device& device, backend::Stream& stream, const backend::ProgramPtr& program,
                  const ir::Workload& workload, const artifact::LaunchPlan& launches, Oracle& oracle,
                  const CheckOptions& options);

}  // namespace thrice::measure
