#include "tune/legal_space.h"

#include <algorithm>

namespace thrice::tune {

using artifact::Schedule;
using artifact::TacticSpace;

LegalSpace::LegalSpace(const ir::Workload& workload, const family::Family& family,
                       const std::vector<ir::Fact>& facts, const target::DeviceSpec& device)
    : workload_(workload),
      family_(family),
      device_(device),
      space_(family.space(workload, facts, device)),
      default_(family.default_schedule(workload, facts, device)) {}

bool LegalSpace::is_legal(const Schedule& schedule) const {
  return !family_.illegal(workload_, schedule, device_);
}

std::optional<Schedule> LegalSpace::sample(Rng& rng, int attempts) const {
  if (space_.tactics.empty()) return std::nullopt;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    const TacticSpace& tactic = space_.tactics[rng.below(space_.tactics.size())];
    Schedule schedule{tactic.family, tactic.tactic, {}};
    for (const artifact::Parameter& p : tactic.parameters)
      schedule.values.emplace_back(p.name, p.choices[rng.below(p.choices.size())]);
    if (is_legal(schedule)) return schedule;
  }
  return std::nullopt;
}

std::vector<Schedule> LegalSpace::neighbours(const Schedule& schedule) const {
  std::vector<Schedule> result;
  for (const TacticSpace& tactic : space_.tactics) {
    if (tactic.family != schedule.family || tactic.tactic != schedule.tactic) continue;
    for (const artifact::Parameter& p : tactic.parameters) {
      const int64_t now = schedule.get(p.name, p.choices.empty() ? 0 : p.choices[0]);
      const auto at = std::lower_bound(p.choices.begin(), p.choices.end(), now);
      for (int step : {-1, 1}) {
        const auto place = (at - p.choices.begin()) + step;
        if (place < 0 || place >= static_cast<std::ptrdiff_t>(p.choices.size())) continue;
        Schedule next = schedule;
        next.set(p.name, p.choices[static_cast<size_t>(place)]);
        if (is_legal(next)) result.push_back(std::move(next));
      }
    }
  }
  return result;
}

std::vector<Schedule> LegalSpace::enumerate(size_t limit) const {
  std::vector<Schedule> result;
  for (const TacticSpace& tactic : space_.tactics) {
    std::vector<size_t> digit(tactic.parameters.size(), 0);
    for (bool more = true; more && result.size() < limit;) {
      Schedule schedule{tactic.family, tactic.tactic, {}};
      for (size_t p = 0; p < digit.size(); ++p)
        schedule.values.emplace_back(tactic.parameters[p].name, tactic.parameters[p].choices[digit[p]]);
      if (is_legal(schedule)) result.push_back(std::move(schedule));
      more = false;
      for (size_t p = digit.size(); p-- > 0 && !more;) {
        if (++digit[p] < tactic.parameters[p].choices.size())
          more = true;
        else
          digit[p] = 0;
      }
    }
  }
  return result;
}

}  // namespace thrice::tune
