// One room per kernel family. A family decides which workloads it can run, offers schedules, prints kernel
// text, and computes launches. Families know nothing of back ends: text is portable between OpenCL C and CUDA
// C++ through the preludes kernels/opencl/prelude.cl and kernels/cuda/prelude.cuh.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "artifact/kernel.h"
#include "artifact/schedule.h"
#include "ir/region.h"
#include "target/device_spec.h"

namespace thrice::family {

using artifact::LaunchPlan;
using artifact::Schedule;
using artifact::ScheduleSpace;
using ir::Fact;
using ir::Workload;
using target::DeviceSpec;

// Why something cannot be; nullopt = it can. Every refusal is a sentence for `explain`.
using Refusal = std::optional<std::string>;

// What a kernel of a program does with the buffers it is given.
struct KernelUse {
  bool once = false;          // artifact::Launch::once
  std::vector<bool> touches;  // by buffer argument: false = its text never refers to it
  std::string body;           // of kernels that run once: equal bodies make the same of the same weights
};

struct ProgramText {
  std::string text;                  // kernels only; the prelude is put before it by codegen
  std::vector<std::string> kernels;  // symbols
};

// All members are const and safe from many threads.
class Family {
 public:
  virtual ~Family() = default;
  virtual std::string_view name() const = 0;

  // Can this family run ALL nodes of the workload as one program (prologue, core, epilogue)? Purely
  // structural: any extents, including 0 and 1.
  virtual Refusal match(const Workload& workload) const = 0;

  // The rule-chosen schedule: what a user gets with no tuning (good on its own: aim within 20% of tuned).
  // `facts` = concrete facts of the workload's inputs it is chosen for; the schedule must then be right for
  // EVERY extent the symbols may take.
  virtual Schedule default_schedule(const Workload& workload, const std::vector<Fact>& facts,
                                    const DeviceSpec& device) const = 0;

  // What may be chosen. Contains the default.
  virtual ScheduleSpace space(const Workload& workload, const std::vector<Fact>& facts,
                              const DeviceSpec& device) const = 0;

  // nullopt = legal. Checked before anything is built; device limits are enforced here.
  virtual Refusal illegal(const Workload& workload, const Schedule& schedule,
                          const DeviceSpec& device) const = 0;

  // Kernel text for a legal schedule. Deterministic. Depends on the workload's structure, its constant
  // extents and one-element constants, never on names of the model.
  virtual ProgramText emit(const Workload& workload, const Schedule& schedule,
                           const DeviceSpec& device) const = 0;

  // Launches for concrete extents. Called once per new shape by the runtime, which has no compiler: cheap, no
  // text.
  virtual LaunchPlan launch(const Workload& workload, const Schedule& schedule,
                            const std::vector<Fact>& facts) const = 0;

  // By kernel (artifact::Launch::kernel), at any extents: what decides how long each buffer must live, and
  // whether a weight itself is needed once it was packed. Empty: not known, every kernel needs every buffer.
  virtual std::vector<KernelUse> uses(const Workload& workload, const Schedule& schedule) const {
    (void)workload, (void)schedule;
    return {};
  }
};

// Every family, in the order in which the planner asks them.
const std::vector<const Family*>& families();
const Family* find_family(std::string_view name);  // nullptr when unknown

// Work of a workload at concrete facts: the two floors. bytes counts each buffer input and output once; flops
// counts mul and add as two.
struct Work {
  double bytes = 0, flops = 0;
};
Work count_work(const Workload& workload, const std::vector<Fact>& facts);

}  // namespace thrice::family
