#include <nlohmann/json.hpp>

#include "flow/optimize.h"

namespace thrice::flow {

std::string OptimizeReport::to_json() const {
  nlohmann::json j;
  // A figure that was not measured is absent, never a number that could be taken for one.
  const auto put = [&](auto& object, const char* key, double value) {
    if (value >= 0) object[key] = value;
  };
  j["model"] = model;
  j["device"] = device;
  j["target"] = target;
  j["trials"] = trials;
  put(j, "original_us", original_us);
  put(j, "original_spread_us", original_spread_us);
  put(j, "best_us", best_us);
  put(j, "best_spread_us", best_spread_us);
  put(j, "best_burst_us", best_burst_us);
  put(j, "best_sustained_us", best_sustained_us);
  put(j, "usable_s", usable_s);
  put(j, "first_release_s", first_release_s);
  put(j, "speedup", speedup);
  put(j, "throughput_per_s", throughput_per_s);
  put(j, "max_error", max_error);
  put(j, "error_limit", error_limit);
  j["verified"] = verified;
  j["cancelled"] = cancelled;
  put(j, "peak_bytes", static_cast<double>(peak_bytes));
  put(j, "original_peak_bytes", static_cast<double>(original_peak_bytes));
  put(j, "constant_bytes", static_cast<double>(constant_bytes));
  put(j, "held_weight_bytes", static_cast<double>(held_weight_bytes));
  put(j, "arena_lower_bound", static_cast<double>(arena_lower_bound));
  j["plan_digest"] = plan_digest;
  j["release"] = release;
  j["timed_at"] = timed_at;
  if (!length_symbol.empty()) {
    j["lengths"] = {{"symbol", length_symbol}, {"points", nlohmann::json::array()}};
    for (const LengthReport& l : lengths)
      j["lengths"]["points"].push_back(
          {{"length", l.length}, {"original_us", l.original_us}, {"best_us", l.best_us}});
  }
  if (!races.tool.empty())
    j["races"] = {{"tool", races.tool},
                  {"clean", races.clean},
                  {"refused", races.refused},
                  {"not_checked", races.not_checked}};
  j["notes"] = notes;
  j["planner"] = planner;
  if (planner == "dp")
    j["fusion"] = {{"price_us", fusion.us},
                   {"greedy_price_us", fusion.greedy_us},
                   {"parts", fusion.pieces},
                   {"exact_parts", fusion.exact_pieces},
                   {"candidates", fusion.candidates},
                   {"judged", fusion.judged},
                   {"states", fusion.states},
                   {"decisions", nlohmann::json::parse(artifact::decisions_json(fusion.decisions))}};
  j["phases"] = nlohmann::json::array();
  for (const PhaseTime& p : phases) j["phases"].push_back({{"phase", p.phase}, {"seconds", p.seconds}});
  j["regions"] = nlohmann::json::array();
  for (const RegionReport& r : regions) {
    nlohmann::json row = {{"name", r.name},         {"family", r.family}, {"schedule", r.schedule},
                          {"workload", r.workload}, {"uses", r.uses},     {"trials", r.trials}};
    put(row, "original_us", r.original_us);
    put(row, "now_us", r.now_us);
    put(row, "error", r.error);
    put(row, "error_limit", r.error_limit);
    put(row, "light_share", r.light_share);
    put(row, "share_at_start", r.share_at_start);
    if (r.share_at_start >= 0) {
      row["trials_without_gain"] = r.trials_without_gain;
      row["ended"] = r.ended;
    }
    j["regions"].push_back(row);
  }
  return j.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace thrice::flow
