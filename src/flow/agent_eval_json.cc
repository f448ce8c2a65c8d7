#include <cmath>
#include <nlohmann/json.hpp>

#include "flow/agent_eval.h"

namespace thrice::flow {
namespace {

using nlohmann::json;

double rounded(double value) { return std::round(value * 1e5) / 1e5; }
json of(double value) { return std::isfinite(value) ? json(rounded(value)) : json(nullptr); }
json of(const tune::Interval& i) { return {of(i.value), of(i.low), of(i.high)}; }

template <class Row>
json common(const Row& row, bool is_scored) {
  json j = {{"agent", row.agent},
            {"after_50", of(row.at_50)},
            {"after_100", of(row.at_100)},
            {"after_500", of(row.at_500)},
            {"trials_to_95", of(row.trials_to_95)},
            {"reached_95", rounded(row.reached)},
            {"cpu_s", rounded(row.cpu_s)}};
  if (is_scored) j["score"] = of(row.score);
  return j;
}

}  // namespace

std::string EvalReport::to_json() const {
  json j = {{"repeats", repeats},
            {"trials", trials},
            {"noise", noise},
            {"seed", seed},
            {"intervals", "[value, low, high], 95%; null: never within the trials"}};
  bool is_scored = false;
  for (const SpaceFacts& s : spaces) {
    json importance = json::object();
    for (const auto& [name, share] : s.importance) importance[name] = rounded(share);
    j["spaces"].push_back({{"name", s.name},
                           {"configurations", s.configurations},
                           {"failing", s.failing},
                           {"optimum_ms", s.optimum_ms},
                           {"median_ms", s.median_ms},
                           {"importance", importance}});
  }
  for (const AgentOnSpace& row : results) {
    json r = common(row, row.budget > 0);
    is_scored = is_scored || row.budget > 0;
    r["space"] = row.space;
    if (row.budget > 0) r["budget"] = row.budget;
    j["results"].push_back(r);
  }
  for (const AgentTotal& row : totals) {
    json r = common(row, is_scored);
    r["spaces"] = row.spaces;
    j["totals"].push_back(r);
  }
  return j.dump(1);
}

}  // namespace thrice::flow
