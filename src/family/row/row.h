// Reductions over trailing axes with what comes before and after: softmax, normalisations, sums, arg-reduce.
#pragma once
#include "family/program.h"

namespace thrice::family {

// Tactics: `item`, a work-item a row (CPUs); `block`, a work-group a row with a tree in local memory (GPUs);
// `tile`, a row of known length in the registers of a warp or block (CUDA; docs/kernels/memory_bound.md).
class RowFamily final : public Family {
 public:
  std::string_view name() const override { return "row"; }
  Refusal match(const Workload& workload) const override;
  Schedule default_schedule(const Workload& workload, const std::vector<Fact>& facts,
                            const DeviceSpec& device) const override;
  ScheduleSpace space(const Workload& workload, const std::vector<Fact>& facts,
                      const DeviceSpec& device) const override;
  Refusal illegal(const Workload& workload, const Schedule& schedule,
                  const DeviceSpec& device) const override;
  ProgramText emit(const Workload& workload, const Schedule& schedule,
                   const DeviceSpec& device) const override;
  LaunchPlan launch(const Workload& workload, const Schedule& schedule,
                    const std::vector<Fact>& facts) const override;
};

}  // namespace thrice::family
