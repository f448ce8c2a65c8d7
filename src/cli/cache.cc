// thrice cache: what is kept from earlier runs, and why a workload would hit or miss.
#include <fmt/format.h>
#include <thrice/status.h>

#include <map>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/session_options.h"
#include "flow/build.h"
#include "report/table.h"
#include "store/store.h"

namespace thrice::cli {

namespace {

struct Summary {
  int64_t trials = 0, ok = 0;
  double best_us = 0;
  std::string schedule;
};

int list(const Arguments& arguments, const flow::Settings& settings, const store::Store& store) {
  std::map<std::pair<std::string, std::string>, Summary> rows;
  for (const auto& r : store.all()) {
    Summary& s = rows[{r.workload, r.shape}];
    ++s.trials;
    if (r.measurement.outcome != artifact::Outcome::kOk) continue;
    ++s.ok;
    if (s.best_us == 0 || r.measurement.time_us < s.best_us) {
      s.best_us = r.measurement.time_us;
      s.schedule = r.schedule.str();
    }
  }
  const auto kernels = jit::KernelCache::statistics(settings.cache_folder + "/kernels");
  if (arguments.has("--json")) {
    nlohmann::json j = {{"store", settings.store_path},
                        {"trials", store.size()},
                        {"damaged_rows", store.damaged_rows()},
                        {"kernels", kernels.entries},
                        {"kernel_bytes", kernels.bytes}};
    for (const auto& [key, s] : rows)
      j["workloads"].push_back({{"workload", key.first},
                                {"shape", key.second},
                                {"trials", s.trials},
                                {"ok", s.ok},
                                {"best_us", s.best_us},
                                {"schedule", s.schedule}});
    fmt::print("{}\n", j.dump(2));
    return 0;
  }
  fmt::print("{} trials in {}, {} damaged rows; {} kernels, {}\n", store.size(), settings.store_path,
             store.damaged_rows(), kernels.entries, report::bytes(static_cast<double>(kernels.bytes)));
  report::Table table({"workload", "shape", "trials", "ok", "best us", "schedule"});
  for (const auto& [key, s] : rows)
    table.add({key.first.substr(0, 12), key.second, std::to_string(s.trials), std::to_string(s.ok),
               report::number(s.best_us), s.schedule});
  fmt::print("{}", table.str({0, 1, 5}, 60));
  return 0;
}

int explain(const Arguments& arguments, const flow::Settings& settings, store::Store& store) {
  const auto prefix = arguments.get("WORKLOAD");
  if (!prefix)
    throw Error(Code::kInvalidArgument,
                "cache explain needs a workload's hash or its beginning: thrice cache explain 3f2a (thrice "
                "cache list shows them)");
  const std::string here = flow::environment_json(*backend::open_device(settings.device));
  const nlohmann::json now = nlohmann::json::parse(here);
  std::map<std::string, int64_t> by_environment;
  for (const auto& r : store.all(*prefix)) ++by_environment[r.environment];
  if (by_environment.empty()) {
    fmt::print("miss: no trial of a workload that begins with '{}'\n", *prefix);
    return 0;
  }
  for (const auto& [key, count] : by_environment) {
    const std::string text = store.environment_description(key);
    if (text == here) {
      fmt::print("hit: {} trials in this very environment\n", count);
      continue;
    }
    const nlohmann::json then = nlohmann::json::parse(text, nullptr, false);
    std::string differs;
    if (then.is_object())
      for (const auto& [field, value] : now.items())
        if (!then.contains(field) || then[field] != value)
          differs += fmt::format("\n    {}: {} now, {} then", field, value.dump(),
                                 then.contains(field) ? then[field].dump() : "absent");
    fmt::print("miss: {} trials in another environment; these fields differ:{}\n", count, differs);
  }
  return 0;
}

int run(const Arguments& arguments) {
  const flow::Settings settings = settings_from(arguments);
  const std::string action = *arguments.get("ACTION");
  std::string notice;
  store::Store store(settings.store_path, &notice);
  if (!notice.empty()) fmt::print(stderr, "note: {}\n", notice);
  if (action == "list") return list(arguments, settings, store);
  if (action == "explain") return explain(arguments, settings, store);
  if (action == "prune") {
    const int64_t days = arguments.integer("--days", 30);
    const int64_t limit = flow::parse_bytes(arguments.get("--max", "1GiB"));
    const int64_t rows = store.prune(unix_time() - days * 86400);
    const int64_t freed = jit::KernelCache::prune(settings.cache_folder + "/kernels", limit);
    fmt::print("deleted {} trials older than {} days, freed {} of kernels\n", rows, days,
               report::bytes(static_cast<double>(freed)));
    return 0;
  }
  throw Error(Code::kInvalidArgument,
              fmt::format("cache: unknown action '{}'; known: list, explain, prune", action));
}

}  // namespace

Command cache_command() {
  std::vector<Option> options = settings_options();
  options.push_back({"--days", "N", "prune: trials older than this (default 30)"});
  options.push_back({"--max", "SIZE", "prune: keep at most this much of kernels (default 1GiB)"});
  return {"cache",
          "list, explain or prune stored trials and kernels",
          "thrice cache explain 3f2a",
          {{"ACTION", "list | explain | prune"},
           {"WORKLOAD", "for explain: a workload's hash or its beginning", false}},
          options,
          run};
}

}  // namespace thrice::cli
