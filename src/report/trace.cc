#include "report/trace.h"

#include <nlohmann/json.hpp>

namespace thrice::report {

std::string perfetto_trace(const std::string& track, const std::vector<TraceSpan>& spans) {
  nlohmann::json events = nlohmann::json::array();
  events.push_back(
      {{"ph", "M"}, {"pid", 1}, {"tid", 1}, {"name", "thread_name"}, {"args", {{"name", track}}}});
  double now = 0;
  for (const TraceSpan& span : spans) {
    events.push_back({{"ph", "X"},
                      {"pid", 1},
                      {"tid", 1},
                      {"ts", now},
                      {"dur", span.duration_us},
                      {"name", span.name},
                      {"args", {{"schedule", span.detail}}}});
    now += span.duration_us;
  }
  return nlohmann::json{{"traceEvents", events}, {"displayTimeUnit", "ms"}}.dump(
      1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace thrice::report
