// thrice cache: what is kept from earlier runs, and why a workload would hit or miss.
#include <fmt/format.h>
#include <thrice/status.h>

#include <map>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/session_options.h"
#include "flow/environment.h"
#include "jit/kernel_cache.h"
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
  const std::vector<flow::CacheAnswer> answers = flow::explain_workload(store, *prefix, here);
  if (arguments.has("--json")) {
    nlohmann::json j = nlohmann::json::array();
    for (const flow::CacheAnswer& a : answers) {
      nlohmann::json differs = nlohmann::json::array();
      for (const auto& d : a.differs)
        differs.push_back({{"field", d.field}, {"now", d.now}, {"then", d.then}});
      j.push_back({{"workload", a.workload},
                   {"shape", a.shape},
                   {"hit", a.hit},
                   {"trials", a.trials},
                   {"verified", a.verified},
                   {"best_us", a.best_us},
                   {"schedule", a.schedule},
                   {"differs", differs}});
    }
    fmt::print("{}\n", j.dump(2));
    return 0;
  }
  if (answers.empty()) fmt::print("miss: no trial of a workload that begins with '{}'\n", *prefix);
  for (const flow::CacheAnswer& a : answers) {
    const std::string of =
        fmt::format("{} at {}: {} trials, {} verified", a.workload.substr(0, 12),
                    a.shape.empty() ? "its constant shape" : a.shape, a.trials, a.verified);
    const std::string best =
        a.verified ? fmt::format(", best {:.1f} us with {}", a.best_us, a.schedule) : std::string();
    if (a.hit) {
      fmt::print("hit: {}{}\n", of, best);
    } else if (a.differs.empty()) {
      fmt::print("miss: {} in this very environment, none of them right\n", of);
    } else {
      fmt::print("miss: {} in another environment{}; a start for the search, measured anew; what differs:\n",
                 of, best);
      for (const auto& d : a.differs) fmt::print("    {}: {} now, {} then\n", d.field, d.now, d.then);
    }
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
