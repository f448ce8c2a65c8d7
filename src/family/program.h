// A kernel program on its way to text and launches. A family builds ONE draft from workload and schedule;
// emit() prints it and launch() evaluates it, so that text and launch arguments cannot disagree.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "family/family.h"

namespace thrice::family {

using Facts = std::vector<Fact>;  // concrete facts of EVERY value of the workload graph (ir::bind)
// A run-time integer: evaluated once per launch from concrete facts.
using Source = std::function<int64_t(const Facts&)>;

struct KernelDraft {
  std::string symbol;
  std::string text;             // the complete function
  std::vector<Source> extents;  // E[0], E[1], ...
  // Sets grid and block. Block sizes must not depend on facts where the text relies on them.
  std::function<void(const Facts&, artifact::Launch&)> geometry;
  bool once = false;  // artifact::Launch::once
};

struct Temporary {
  DType dtype = DType::kF32;
  Source elements;
  bool kept = false;  // outlives the run: written by kernels that run once
};

// Buffers are arguments p0, p1, ... of every kernel: inputs that are not shape inputs, outputs, temporaries.
// They never overlap within a region (they are declared restrict).
class ProgramDraft {
 public:
  explicit ProgramDraft(const Workload& workload);

  const Workload& workload() const { return workload_; }
  const ir::Graph& graph() const { return workload_.graph; }
  // Declares a scratch buffer; all of them before the first kernel is begun. Returns its number.
  int add_temporary(DType dtype, Source elements, bool kept = false);
  const Temporary& temporary(int number) const { return temporaries_[static_cast<size_t>(number)]; }
  std::string input_name(ir::ValueId value) const;  // "" when it is no buffer input
  std::string output_name(size_t output) const;
  std::string temporary_name(int number) const;
  std::string parameters() const;  // text between the parentheses of every kernel, E included

  std::vector<KernelDraft> kernels;  // launched in this order, each once

  ProgramText text() const;
  // Read off the texts: a kernel touches what its body names. A library's call, which has no body, touches
  // everything.
  std::vector<KernelUse> uses() const;
  // Binds the facts of the inputs, evaluates sources and geometry. Throws kUnsupported where a tensor or an
  // index would not fit 32 bits.
  LaunchPlan launch(const std::vector<Fact>& input_facts) const;

 private:
  Workload workload_;  // a copy, so that a kept draft outlives its maker; constants share their bytes
  std::vector<Temporary> temporaries_;
  size_t num_inputs_ = 0;
};

// The draft that `build` fills for this workload and schedule, made once and kept for the next call (keyed by
// the workload's hash; a bounded number). Thread-safe; the draft is immutable.
std::shared_ptr<const ProgramDraft> draft_of(const Workload& workload, const Schedule& schedule,
                                             const std::function<void(ProgramDraft&)>& build);

// Sources that are often needed.
Source extent_of(ir::ValueId value, int axis);
Source elements_of(ir::ValueId value);
int64_t extent_at(const Facts& facts, ir::ValueId value, int axis);
int64_t elements_at(const Facts& facts, ir::ValueId value);
// Integers of a small operand whose value is known on the host; throws kInternal when it is not.
std::vector<int64_t> known_ints(const Fact& fact);

// Sets a one-dimensional launch of `blocks` work-groups of `threads`.
void set_grid(artifact::Launch& launch, int64_t blocks, int64_t threads);

// Refusals shared by all families: dtypes that kernels do not handle (sub-byte types, strings), and f64 on a
// device without it.
Refusal refuse_dtypes(const Workload& workload);
Refusal refuse_device(const Workload& workload, const DeviceSpec& device, int64_t threads,
                      int64_t shared_bytes);
// As refuse_device, for shared memory that a launch asks for: as much as the device lends on request.
Refusal refuse_at_launch(const Workload& workload, const DeviceSpec& device, int64_t threads,
                         int64_t shared_bytes);

}  // namespace thrice::family
