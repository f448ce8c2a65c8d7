// Any set of element-wise and view nodes: every output element is computed from the inputs by itself.
#pragma once
#include "family/in_place.h"

namespace thrice::family {

// Tactics: `flat`, one work-item an element of the output; `vector`, trailing axes joined where no operand
// forbids it, an inner loop without divisions, several rows and columns a work-group. CUDA (docs/kernels/
// memory_bound.md): `pack`, neighbours at once; `tile`, operands that turn do so in shared memory. All but
// `tile` write in place where every output has one shape: a work-item loads what it needs of an element, or
// of a pack, before it stores the same one.
class MapFamily final : public Family, public InPlaceFamily {
 public:
  std::string_view name() const override { return "map"; }
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
  std::vector<Share> shares(const Workload& workload, const Schedule& schedule) const override;
};

}  // namespace thrice::family
