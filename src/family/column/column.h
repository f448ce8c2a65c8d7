// Reductions over leading or middle axes, and any other set of axes: channel statistics, means over time.
#pragma once
#include "family/program.h"

namespace thrice::family {

// Tactics: `lanes`, a work-item reduces neighbouring columns at once; `general`, a work-item a result, any
// axes; `split`, blocks share the rows and join partial results (CUDA).
class ColumnFamily final : public Family {
 public:
  std::string_view name() const override { return "column"; }
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
