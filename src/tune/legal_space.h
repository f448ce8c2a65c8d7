// The legal part of a workload's schedule space: samples, neighbours, membership.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/rng.h"
#include "family/family.h"

namespace thrice::tune {

class LegalSpace {
 public:
  LegalSpace(const ir::Workload& workload, const family::Family& family, const std::vector<ir::Fact>& facts,
             const target::DeviceSpec& device);

  // Legal schedules drawn uniformly over tactics, then over each tactic's product; nullopt when `attempts`
  // draws were all illegal.
  std::optional<artifact::Schedule> sample(Rng& rng, int attempts = 200) const;
  // Legal schedules that differ in one parameter by one step up or down; parameters in order, down before up.
  std::vector<artifact::Schedule> neighbours(const artifact::Schedule& schedule) const;
  // Every legal schedule in order, at most `limit`.
  std::vector<artifact::Schedule> enumerate(size_t limit) const;
  bool is_legal(const artifact::Schedule& schedule) const;
  const artifact::ScheduleSpace& space() const { return space_; }
  const artifact::Schedule& default_schedule() const { return default_; }

 private:
  const ir::Workload& workload_;
  const family::Family& family_;
  const target::DeviceSpec& device_;
  artifact::ScheduleSpace space_;
  artifact::Schedule default_;
};

}  // namespace thrice::tune
