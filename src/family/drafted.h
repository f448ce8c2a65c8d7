// Families that make one draft of a schedule: their text and their launches are its.
#pragma once
#include "family/program.h"

namespace thrice::family {

class DraftedFamily : public Family {
 public:
  ProgramText emit(const Workload& workload, const Schedule& schedule, const DeviceSpec& device) const final {
    return make_draft(workload, schedule, device.is_cpu).text();
  }
  LaunchPlan launch(const Workload& workload, const Schedule& schedule,
                    const std::vector<Fact>& facts) const final {
    return make_draft(workload, schedule, false).launch(facts);
  }

 protected:
  // The kernels of a legal schedule. `is_cpu` may change what is written, never what is launched.
  virtual ProgramDraft make_draft(const Workload& workload, const Schedule& schedule, bool is_cpu) const = 0;
};

}  // namespace thrice::family
