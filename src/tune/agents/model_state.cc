// What a ModelAgent writes down and takes up again: its trials, and the policy.
#include <fmt/format.h>
#include <thrice/status.h>

#include <sstream>

#include "tune/agents/model.h"

namespace thrice::tune {

void ModelAgent::save(std::string& state) const {
  state = fmt::format("{} {}\n", name_, trials_.size());
  for (const Trial& t : trials_)
    state += fmt::format("{} {:.9g} {}\n", t.told.ok ? 1 : 0, t.told.cost, space_.schedule(t.point).str());
  state += policy_.save() + "\n";
}

void ModelAgent::load(const std::string& state) {
  std::istringstream stream(state);
  std::string line, name;
  size_t count = 0;
  std::getline(stream, line);
  std::istringstream(line) >> name >> count;
  if (name != name_)
    throw Error(Code::kCorrupt, fmt::format("the state of an agent '{}' is not one of '{}'", name, name_));
  for (size_t i = 0; i < count; ++i) {
    if (!std::getline(stream, line)) throw Error(Code::kCorrupt, "the state of an agent ends early");
    std::istringstream words(line);
    int ok = 0;
    double cost = 0;
    words >> ok >> cost;
    std::string schedule;
    std::getline(words >> std::ws, schedule);
    if (const auto point = space_.point(artifact::Schedule::parse(schedule))) tell(*point, {ok != 0, cost});
  }
  std::getline(stream, line);
  policy_.load(line);
}

}  // namespace thrice::tune
