#include "artifact/plan.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "base/json_depth.h"

namespace thrice::artifact {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;
constexpr int kMaxDepth = 32;  // nested bodies; real models nest 2 or 3 deep
constexpr const char* kKinds[] = {"region", "alias", "host", "control"};

Json to(const Plan& plan) {
  Json segments = Json::array();
  for (const Segment& segment : plan.segments) {
    Json steps = Json::array();
    for (const PlanStep& step : segment.steps) {
      Json s{{"kind", kKinds[static_cast<size_t>(step.kind)]}, {"nodes", step.nodes}};
      if (step.kind == StepKind::kRegion) {
        s["workload"] = step.workload;
        s["schedule"] = step.schedule.str();
        for (const Bucket& bucket : step.buckets)
          s["buckets"].push_back(Json{{"up_to", bucket.up_to}, {"schedule", bucket.schedule.str()}});
      }
      if (step.slow) s["slow"] = true;
      steps.push_back(std::move(s));
    }
    segments.push_back(Json{{"steps", std::move(steps)}});
  }
  Json bodies = Json::array();
  for (const Plan::Body& body : plan.bodies)
    bodies.push_back(Json{{"node", body.node}, {"body", body.body}, {"plan", to(body.plan.at(0))}});
  Json json{{"version", plan.version}, {"graph_hash", plan.graph_hash}, {"planner", plan.planner}};
  if (!plan.bucket_symbol.empty()) json["bucket_symbol"] = plan.bucket_symbol;
  json["segments"] = std::move(segments);
  json["bodies"] = std::move(bodies);
  return json;
}

[[noreturn]] void corrupt(const std::string& what) { throw Error(Code::kCorrupt, "plan: " + what); }

int32_t index_of(const Json& json) {
  if (!json.is_number_integer()) corrupt("an index is no whole number");
  const auto value = json.get<int64_t>();
  if (value < 0 || value > INT32_MAX) corrupt(fmt::format("index {} is out of range", value));
  return static_cast<int32_t>(value);
}

std::vector<Bucket> buckets_from(const Json& json) {
  std::vector<Bucket> buckets;
  for (const Json& b : json) {
    if (!b.at("up_to").is_number_integer()) corrupt("the end of a bucket is no whole number");
    buckets.push_back({b.at("up_to").get<int64_t>(), Schedule::parse(b.at("schedule").get<std::string>())});
    if (buckets.size() > 1 && buckets.back().up_to <= buckets[buckets.size() - 2].up_to)
      corrupt("buckets are not ascending");
  }
  return buckets;
}

PlanStep step_from(const Json& json) {
  PlanStep step;
  const std::string kind = json.at("kind").get<std::string>();
  size_t k = 0;
  while (k < std::size(kKinds) && kind != kKinds[k]) ++k;
  if (k == std::size(kKinds)) corrupt(fmt::format("'{}' is no kind of step", kind));
  step.kind = static_cast<StepKind>(k);
  for (const Json& n : json.at("nodes")) step.nodes.push_back(index_of(n));
  if (step.nodes.empty()) corrupt("a step has no nodes");
  if (step.kind == StepKind::kRegion) {
    step.workload = json.at("workload").get<std::string>();
    step.schedule = Schedule::parse(json.at("schedule").get<std::string>());
    if (json.contains("buckets")) step.buckets = buckets_from(json.at("buckets"));
  } else if (step.nodes.size() != 1) {
    corrupt(fmt::format("a step of kind {} has {} nodes", kind, step.nodes.size()));
  }
  step.slow = json.value("slow", false);
  return step;
}

Plan from(const Json& json, int depth) {
  if (depth > kMaxDepth) corrupt("bodies are nested too deep");
  Plan plan;
  if (!json.at("version").is_number_integer()) corrupt("the version is no number");
  const auto version = json.at("version").get<int64_t>();
  if (version != kVersion) corrupt(fmt::format("version {} is not {}", version, kVersion));
  plan.graph_hash = json.at("graph_hash").get<std::string>();
  plan.planner = json.at("planner").get<std::string>();
  plan.bucket_symbol = json.value("bucket_symbol", "");
  for (const Json& s : json.at("segments")) {
    Segment segment;
    for (const Json& step : s.at("steps")) segment.steps.push_back(step_from(step));
    plan.segments.push_back(std::move(segment));
  }
  for (const Json& b : json.at("bodies"))
    plan.bodies.push_back({index_of(b.at("node")), index_of(b.at("body")), {from(b.at("plan"), depth + 1)}});
  return plan;
}

}  // namespace

std::string Plan::to_json() const { return to(*this).dump(1); }

Plan Plan::from_json(const std::string& text) {
  constexpr int kMaxNesting = 8 * kMaxDepth;
  if (nested_deeper_than(text, kMaxNesting)) corrupt("it is nested too deep");
  try {
    return from(Json::parse(text), 0);
  } catch (const nlohmann::json::exception& error) {
    corrupt(error.what());
  }
}

std::string Plan::digest() const { return hash_hex(to_json()); }

}  // namespace thrice::artifact
