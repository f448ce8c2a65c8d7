#include "library/memory.h"

#include <thrice/status.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "library/extract.h"

namespace thrice::library {

namespace {

// Name and architecture of a described device; what else differs (driver, product) does not make a schedule
// useless.
std::string device_of(const std::string& description) {
  const nlohmann::json j = nlohmann::json::parse(description, nullptr, false);
  if (!j.is_object()) return {};
  return j.value("name", std::string()) + "\n" + j.value("architecture", std::string());
}

// As a column of an entry's line takes it.
std::string network_name(std::string name) {
  for (char& c : name)
    if (c == ' ' || c == ',' || c == '|' || c == '\n') c = '_';
  return name.empty() ? "unnamed" : name;
}

}  // namespace

void remember(store::Store& store, const plan::PlannedWorkload& planned, const std::string& network,
              const std::string& environment, const std::string& shape, const artifact::Schedule& schedule,
              double time_us) {
  Entry entry = entry_of(planned);
  entry.networks = {network_name(network)};
  store.put_best({entry.id, environment, shape, to_line(entry), schedule.str(), time_us, unix_time()});
}

Memory::Memory(const store::Store& store, std::string environment) : environment_(std::move(environment)) {
  const std::string device = device_of(store.environment_description(environment_));
  std::map<std::string, bool> is_same_device;
  for (const store::Store::OperatorBest& b : store.bests()) {
    const auto [it, is_new] = is_same_device.emplace(b.environment, false);
    if (is_new) it->second = device_of(store.environment_description(b.environment)) == device;
    if (it->second)
      known_.push_back(
          {from_line(b.line), 0, b.environment, b.shape, artifact::Schedule::parse(b.schedule), b.time_us});
  }
}

std::vector<Neighbour> Memory::neighbours(const Entry& entry, const std::string& shape, size_t most) const {
  std::vector<std::pair<double, const Neighbour*>> near;
  for (const Neighbour& n : known_) {
    if (n.entry.id == entry.id && n.environment == environment_ && n.shape == shape) continue;
    if (const double far = distance(entry, n.entry); far <= kFar) near.emplace_back(far, &n);
  }
  std::stable_sort(near.begin(), near.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Neighbour> kept;
  for (const auto& [far, n] : near) {
    const auto same = [&n = *n](const Neighbour& k) { return k.schedule == n.schedule; };
    if (kept.size() >= most || std::any_of(kept.begin(), kept.end(), same)) continue;
    kept.push_back(*n);
    kept.back().distance = far;
  }
  return kept;
}

}  // namespace thrice::library
