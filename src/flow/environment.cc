#include "flow/environment.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "family/kernel_text.h"
#include "flow/search.h"
#include "hardware/snapshot.h"

namespace thrice::flow {
namespace {

// Counts changes of what a stored trial has proved or what its time means: a stricter gate makes trials of an
// older one worthless.
constexpr int kRecordSchema = 3;

// Of all kernel texts that are built in. What is made of them for one schedule has a digest of its own in
// each trial; this one tells where to look when trials of an older version are no hits.
std::string digest_of_templates() {
  Hasher hasher;
  for (const family::KernelText& text : family::kernel_texts()) hasher.add(text.path).add(text.text);
  return hasher.hex();
}

}  // namespace

std::string environment_json(const target::DeviceSpec& spec, const std::string& compiler,
                             double power_limit_w) {
  return nlohmann::json{{"device", spec.key()},  // whatever is not listed below
                        {"name", spec.name},
                        {"driver", spec.driver},
                        {"architecture", spec.architecture},
                        {"compute_units", spec.compute_units},
                        {"max_threads_per_block", spec.max_threads_per_block},
                        {"max_shared_bytes", spec.max_shared_bytes},
                        {"optin_shared_bytes", spec.optin_shared_bytes},
                        {"max_alloc_bytes", spec.max_alloc_bytes},
                        {"l2_bytes", spec.l2_bytes},
                        {"warp_size", spec.warp_size},
                        {"registers_per_block", spec.registers_per_block},
                        {"cublaslt", spec.cublaslt},
                        {"cudnn", spec.cudnn},
                        {"bandwidth_gbs", spec.bandwidth_gbs},  // by memory clock and bus; 0 = not told
                        {"f32_gflops", spec.f32_gflops},        // by the highest clock
                        {"power_limit_w", power_limit_w},
                        {"kernel_templates", digest_of_templates()},
                        {"compiler", compiler},
                        {"product", THRICE_VERSION},
                        {"record_schema", kRecordSchema}}
      .dump();
}

std::string environment_json(backend::Device& device) {
  double power_limit_w = hardware::kUnknown;
  if (device.spec().api == target::Api::kCuda)
    for (const hardware::DeviceState& state : hardware::system_source()->sample().devices)
      if (state.id == device.spec().id) power_limit_w = state.power_limit_w;
  return environment_json(device.spec(), device.compiler() ? device.compiler()->version() : "none",
                          power_limit_w);
}

std::vector<FieldDifference> differing_fields(const std::string& now_text, const std::string& then_text) {
  const nlohmann::json now = nlohmann::json::parse(now_text, nullptr, false);
  const nlohmann::json then = nlohmann::json::parse(then_text, nullptr, false);
  if (!now.is_object() || !then.is_object()) return {{"description", now_text, then_text}};
  nlohmann::json all = then;
  all.update(now);
  std::vector<FieldDifference> differences;
  const auto text = [](const nlohmann::json& j, const std::string& field) {
    return j.contains(field) ? j[field].dump() : std::string("absent");
  };
  for (const auto& [field, value] : all.items())
    if (text(now, field) != text(then, field))
      differences.push_back({field, text(now, field), text(then, field)});
  // The digest of the device differs wherever a listed property does; it is told only where it stands alone.
  if (differences.size() > 1) std::erase_if(differences, [](const auto& d) { return d.field == "device"; });
  return differences;
}

std::vector<CacheAnswer> explain_workload(const store::Store& store, const std::string& prefix,
                                          const std::string& environment_here) {
  std::map<std::array<std::string, 3>, CacheAnswer> answers;
  for (const artifact::TuningRecord& r : store.all(prefix)) {
    CacheAnswer& a = answers[{r.environment, r.workload, r.shape}];
    a.workload = r.workload;
    a.shape = r.shape;
    a.environment = r.environment;
    ++a.trials;
    if (!is_verified(r.measurement) || !(r.measurement.time_us > 0)) continue;
    ++a.verified;
    if (a.best_us >= 0 && !(r.measurement.time_us < a.best_us)) continue;
    a.best_us = r.measurement.time_us;
    a.schedule = r.schedule.str();
  }
  std::vector<CacheAnswer> list;
  for (auto& [key, answer] : answers) {
    const std::string description = store.environment_description(answer.environment);
    if (description != environment_here)
      answer.differs = differing_fields(environment_here, description);
    else
      answer.hit = answer.verified > 0;
    list.push_back(std::move(answer));
  }
  std::stable_sort(list.begin(), list.end(), [](const CacheAnswer& a, const CacheAnswer& b) {
    return a.differs.empty() && !b.differs.empty();
  });
  return list;
}

std::vector<artifact::Schedule> warm_starts(const store::Store& store, const std::string& workload,
                                            const std::string& shape, const std::string& environment_key,
                                            size_t most) {
  std::map<std::pair<std::string, std::string>, artifact::TuningRecord> best;  // by environment and shape
  for (artifact::TuningRecord& r : store.all(workload)) {
    if (r.workload != workload || (r.environment == environment_key && r.shape == shape)) continue;
    if (!is_verified(r.measurement) || !(r.measurement.time_us > 0)) continue;
    const auto [it, is_new] = best.try_emplace({r.environment, r.shape}, r);
    if (!is_new && r.measurement.time_us < it->second.measurement.time_us) it->second = std::move(r);
  }
  std::vector<artifact::TuningRecord> order;
  for (auto& [key, record] : best) order.push_back(std::move(record));
  std::stable_sort(order.begin(), order.end(), [&](const auto& a, const auto& b) {
    if ((a.shape == shape) != (b.shape == shape)) return a.shape == shape;
    return a.unix_time > b.unix_time;
  });
  std::vector<artifact::Schedule> schedules;
  for (const artifact::TuningRecord& r : order)
    if (schedules.size() < most &&
        std::find(schedules.begin(), schedules.end(), r.schedule) == schedules.end())
      schedules.push_back(r.schedule);
  return schedules;
}

}  // namespace thrice::flow
