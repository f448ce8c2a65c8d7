#include "artifact/decision.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <nlohmann/json.hpp>

namespace thrice::artifact {

using json = nlohmann::json;

std::string decisions_json(const std::vector<FusionDecision>& decisions) {
  json list = json::array();
  for (const FusionDecision& d : decisions) {
    json one = {
        {"operators", d.operators}, {"uses", d.uses},     {"exact", d.exact}, {"candidates", d.candidates},
        {"complete", d.complete},   {"states", d.states}, {"why", d.why}};
    one["alternatives"] = json::array();
    for (const FusionAlternative& a : d.alternatives) {
      json alternative = {{"name", a.name}, {"us", a.us}};
      alternative["regions"] = json::array();
      for (const PricedRegion& r : a.regions)
        alternative["regions"].push_back(
            {{"name", r.name}, {"us", r.us}, {"uncertainty_us", r.uncertainty_us}, {"source", r.source}});
      one["alternatives"].push_back(std::move(alternative));
    }
    list.push_back(std::move(one));
  }
  return list.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::vector<FusionDecision> decisions_from_json(const std::string& text) {
  try {
    std::vector<FusionDecision> decisions;
    for (const json& one : json::parse(text)) {
      FusionDecision d;
      d.operators = one.at("operators").get<std::vector<std::string>>();
      d.uses = one.at("uses");
      d.exact = one.at("exact");
      d.candidates = one.at("candidates");
      d.complete = one.at("complete");
      d.states = one.at("states");
      d.why = one.at("why");
      for (const json& a : one.at("alternatives")) {
        FusionAlternative alternative;
        alternative.name = a.at("name");
        alternative.us = a.at("us");
        for (const json& r : a.at("regions"))
          alternative.regions.push_back({r.at("name"), r.at("us"), r.at("uncertainty_us"), r.at("source")});
        d.alternatives.push_back(std::move(alternative));
      }
      decisions.push_back(std::move(d));
    }
    return decisions;
  } catch (const json::exception& e) {
    throw Error(Code::kCorrupt, fmt::format("decisions of a plan: {}", e.what()));
  }
}

}  // namespace thrice::artifact
