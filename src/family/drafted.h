// Families that make one draft of a schedule: their text and their launches are its.
#pragma once
#include "family/in_place.h"

namespace thrice::family {

class DraftedFamily : public Family, public InPlaceFamily {
 public:
  ProgramText emit(const Workload& workload, const Schedule& schedule, const DeviceSpec& device) const final {
    const ProgramDraft draft = make_draft(workload, schedule, device.is_cpu);
    ProgramText program = draft.text();
    drop_restrict(draft, shares_of(*this, workload, schedule), program);
    return program;
  }
  LaunchPlan launch(const Workload& workload, const Schedule& schedule,
                    const std::vector<Fact>& facts) const final {
    return make_draft(workload, schedule, false).launch(facts);
  }

  std::vector<Share> shares(const Workload&, const Schedule&) const override { return {}; }

 protected:
  // The kernels of a legal schedule. `is_cpu` may change what is written, never what is launched.
  virtual ProgramDraft make_draft(const Workload& workload, const Schedule& schedule, bool is_cpu) const = 0;
};

}  // namespace thrice::family
