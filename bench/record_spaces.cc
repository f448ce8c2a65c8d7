// Records what configurations of our families are worth on a device, as the recorded spaces that agents are
// compared on and trained with (data/spaces).
//   bench_record_spaces --folder DIR [--device cuda:0] [--cases matmul,conv,row] [--most 1300] [--limit 300]
//                       [--kernels DIR] [--name h200] [--count 1]
// Writes DIR/CASE_NAME_EXTENT.csv, a line a trial as soon as it was made, and DIR/meta.json; goes on with
// what is there. Every legal configuration where there are at most --most, else a uniform draw of 7 in 10
// and, for the rest, all that differ in one parameter from the best so far. Each passes the screening gate
// and is timed for 5 ms; one that is five times slower than the best so far has one sample. Cases take turns,
// so that the limit (seconds) cuts all alike. --count 1: only says how many are legal (also for --device
// cuda:sm_90a).
#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/clock.h"
#include "bench/tuned_cases.h"
#include "flow/agent_train.h"
#include "flow/open_target.h"
#include "measure/trial.h"
#include "tune/family_space.h"
#include "worker/runner.h"
#include "worker/serve.h"

namespace {

using namespace thrice;  // NOLINT: a program of one file
using artifact::Measurement;
using artifact::Schedule;
using nlohmann::json;

struct Flags {
  std::string device, folder, cases = "matmul,conv,row", kernels, name = "device";
  size_t most = 1300;
  double limit_s = 300;
  bool count = false;
};

// One extent of a case: its file, and what is known of it.
struct Table {
  plan::PlannedWorkload planned;
  std::string name;
  std::unique_ptr<measure::Oracle> oracle;
  std::ofstream file;
  std::map<std::string, double> times;  // by schedule; us, NaN: failed
  double best_us = 0;
};

class Recorder {
 public:
  Recorder(const bench::TunedCase& c, const Flags& flags, const target::DeviceSpec& device)
      : case_(c), flags_(flags) {
    for (const int64_t extent : c.extents) {
      Table& table = tables_.emplace_back();
      table.planned = bench::planned_at(case_, extent, device);
      table.name = fmt::format("{}_{}_{}", c.name, flags.name, extent);
      table.oracle = std::make_unique<measure::Oracle>(case_.workload, table.planned.facts);
    }
    space_ = tune::family_space(case_.workload, *tables_[0].planned.family, tables_[0].planned.facts, device);
    legal_ = space_.enumerate(200'000);
    for (size_t d = 1; d < space_.dimensions().size(); ++d) names_.push_back(space_.dimensions()[d].name);
  }
  size_t legal() const { return legal_.size(); }
  std::string by_tactic() const {
    std::map<std::string, int> counts;
    for (const tune::Point& p : legal_) ++counts[space_.label(p[0])];
    std::string text;
    for (const auto& [label, count] : counts) text += fmt::format(" {}={}", label, count);
    return text;
  }
  const std::string& name() const { return case_.name; }

  void open() {
    for (Table& table : tables_) {
      const std::string path = flags_.folder + "/" + table.name + ".csv";
      read(path, table);
      const bool is_new = table.times.empty();
      table.file.open(path, is_new ? std::ios::trunc : std::ios::app);
      if (!is_new) continue;
      table.file << "tactic";
      for (const std::string& name : names_) table.file << "," << name;
      table.file << ",time,spread_us,samples,outcome,registers,shared_bytes,spill_bytes,temporary_bytes\n"
                 << std::flush;
    }
    for (const Table& table : tables_) add(table.planned.schedule);
    const auto drawn = static_cast<size_t>(
        legal_.size() <= flags_.most ? legal_.size() : 0.7 * static_cast<double>(flags_.most));
    std::vector<tune::Point> order = legal_;
    Rng rng(11);
    for (size_t i = 0; i + 1 < order.size(); ++i) std::swap(order[i], order[i + rng.below(order.size() - i)]);
    for (size_t i = 0; i < drawn; ++i) add(space_.schedule(order[i]));
  }

  // The next ones, to be built ahead; empty: nothing is left.
  std::vector<Schedule> ahead(size_t count) {
    if (next_ + count > plan_.size() && plan_.size() < flags_.most) add_neighbours();
    const size_t end = std::min(plan_.size(), next_ + count);
    return {plan_.begin() + static_cast<std::ptrdiff_t>(next_),
            plan_.begin() + static_cast<std::ptrdiff_t>(end)};
  }
  bool step(measure::TrialRunner& runner) {
    if (next_ >= plan_.size()) return false;
    const Schedule& s = plan_[next_++];
    Measurement first;  // the gate's answer, at the first extent
    const double begin = monotonic_us();
    double gate_us = 0;
    for (size_t i = 0; i < tables_.size(); ++i) {
      Table& table = tables_[i];
      if (table.times.count(s.str())) continue;
      if (i == 0 || first.samples == 0)
        first = gated(runner, s, table), gate_us = monotonic_us() - begin;
      else if (first.outcome == artifact::Outcome::kOk)
        time_only(runner, s, table, first);
      write(table, s, first);
    }
    gate_s_ += gate_us * 1e-6;
    time_s_ += (monotonic_us() - begin - gate_us) * 1e-6;
    return true;
  }
  const std::vector<ir::Fact>& facts_of_first() const { return tables_[0].planned.facts; }
  size_t done() const { return next_; }
  double gate_s() const { return gate_s_; }
  double time_s() const { return time_s_; }
  size_t planned() const { return plan_.size(); }
  double best_us(size_t i) const { return tables_[i].best_us; }

  json facts(const target::DeviceSpec& device) const {
    json all;
    for (const Table& table : tables_) {
      json one = {{"family", case_.name},
                  {"problem", case_.problem},
                  {"device", device.name},
                  {"driver", device.driver},
                  {"arch", device.architecture},
                  {"shape", "s0=" + table.name.substr(table.name.rfind('_') + 1)},
                  {"legal", std::to_string(legal_.size())},
                  {"recorded", std::to_string(table.times.size())},
                  {"default_schedule", table.planned.schedule.str()}};
      for (const auto& [name, value] : flow::context_of(table.planned, device))
        one[name] = std::round((std::exp2(value) - 1) * 1e4) / 1e4;
      all[table.name] = std::move(one);
    }
    return all;
  }

 private:
  Measurement gated(measure::TrialRunner& runner, const Schedule& s, Table& table) {
    measure::TrialOptions options;
    options.seed = 5;  // float64 answers once
    options.give_up_us = 5 * table.best_us;
    options.timing = short_look();
    return runner.run(case_.workload, *table.planned.family, s, *table.oracle, options).measurement;
  }
  static measure::TimingOptions short_look() {
    measure::TimingOptions options;
    options.max_total_us = 5e3;
    return options;
  }
  // The same program at another extent: nearly all of a trial's time is the comparison of large results.
  void time_only(measure::TrialRunner& runner, const Schedule& s, Table& table, Measurement& m) {
    try {
      const auto timing =
          runner.compare(case_.workload, *table.planned.family, {s}, *table.oracle, short_look()).at(0);
      m.time_us = timing.median_us;
      m.spread_us = timing.spread_us;
      m.samples = timing.samples;
      m.temporary_bytes = 0;
      for (const int64_t bytes :
           table.planned.family->launch(case_.workload, s, table.planned.facts).temporary_bytes)
        m.temporary_bytes += bytes;
    } catch (const Error& error) {
      m.outcome = artifact::Outcome::kLaunchFailed;
      m.message = error.what();
    }
  }
  void add(const Schedule& s) {
    if (planned_.insert(s.str()).second) plan_.push_back(s);
  }
  // All one-parameter variations of the best of each extent, the best's first.
  void add_neighbours() {
    std::vector<std::vector<std::pair<double, Schedule>>> ranks;
    for (const Table& table : tables_) {
      auto& rank = ranks.emplace_back();
      for (const auto& [text, time] : table.times)
        if (!std::isnan(time)) rank.emplace_back(time, Schedule::parse(text));
      std::sort(rank.begin(), rank.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    }
    constexpr size_t kBases = 60, kAtOnce = 96;
    const size_t until = std::min(flags_.most, plan_.size() + kAtOnce);
    for (size_t i = 0; i < kBases && plan_.size() < until; ++i)
      for (const auto& rank : ranks)
        if (i < rank.size())
          if (const auto point = space_.point(rank[i].second))
            for (const tune::Point& p : space_.variations(*point))
              if (plan_.size() < until) add(space_.schedule(p));
  }
  void write(Table& table, const Schedule& s, const Measurement& m) {
    const bool ok = m.outcome == artifact::Outcome::kOk && m.time_us > 0;
    table.times[s.str()] = ok ? m.time_us : std::nan("");
    if (ok && (table.best_us <= 0 || m.time_us < table.best_us)) table.best_us = m.time_us;
    table.file << s.tactic;
    for (const std::string& name : names_) table.file << "," << s.get(name, 0);
    table.file << "," << (ok ? fmt::format("{:.6g}", m.time_us * 1e-3) : "nan")
               << fmt::format(",{:.3g},{},{},{},{},{},{}\n", m.spread_us, m.samples,
                              artifact::outcome_name(m.outcome), m.registers, m.shared_bytes, m.spill_bytes,
                              m.temporary_bytes)
               << std::flush;
    if (!ok && failures_++ < 5) std::cerr << table.name << " " << s.str() << ": " << m.message << "\n";
  }
  // What an earlier run left.
  void read(const std::string& path, Table& table) {
    std::ifstream in(path);
    std::string line;
    std::getline(in, line);
    while (std::getline(in, line)) {
      std::vector<std::string> fields;
      std::istringstream stream(line);
      for (std::string field; std::getline(stream, field, ',');) fields.push_back(field);
      if (fields.size() != names_.size() + 9) continue;
      for (size_t t = 0; t < space_.tactics(); ++t) {
        const std::string& label = space_.label(t);
        if (label.substr(label.find('/') + 1) != fields[0]) continue;
        tune::Point point(names_.size() + 1, 0);
        point[0] = static_cast<uint16_t>(t);
        for (size_t d = 1; d <= names_.size(); ++d) {
          const auto& choices = space_.dimensions()[d].choices;
          const auto at = std::find(choices.begin(), choices.end(), std::stoll(fields[d]));
          if (at != choices.end() && !space_.allowed(t, d).empty())
            point[d] = static_cast<uint16_t>(at - choices.begin());
        }
        const double ms =
            fields[names_.size() + 1] == "nan" ? std::nan("") : std::stod(fields[names_.size() + 1]);
        const Schedule s = space_.schedule(point);
        add(s);
        table.times[s.str()] = ms * 1e3;
        if (ms > 0 && (table.best_us <= 0 || ms * 1e3 < table.best_us)) table.best_us = ms * 1e3;
      }
    }
  }

  const bench::TunedCase& case_;
  const Flags& flags_;
  std::vector<Table> tables_;
  tune::Space space_;
  std::vector<tune::Point> legal_;
  std::vector<std::string> names_;
  std::vector<Schedule> plan_;
  std::set<std::string> planned_;
  size_t next_ = 0;
  double gate_s_ = 0, time_s_ = 0;  // spent so far at the first extent, with waiting for builders; elsewhere
  int failures_ = 0;
};

void record(const std::vector<bench::TunedCase>& cases, const Flags& flags,
            const backend::DevicePtr& device) {
  const double begin = monotonic_us();
  const auto seconds = [&] { return (monotonic_us() - begin) * 1e-6; };
  std::vector<std::unique_ptr<Recorder>> recorders;
  for (const bench::TunedCase& c : cases)
    if (("," + flags.cases + ",").find("," + c.name + ",") != std::string::npos) {
      recorders.push_back(std::make_unique<Recorder>(c, flags, device->spec()));
      fmt::print("{}: {} legal:{}\n", c.name, recorders.back()->legal(), recorders.back()->by_tactic());
    }
  if (flags.count) return;
  std::filesystem::create_directories(flags.folder);
  const std::string kernels = flags.kernels.empty() ? flags.folder + "/kernels" : flags.kernels;
  const auto cache = std::make_shared<jit::KernelCache>(device, kernels);
  worker::RunnerOptions options;
  options.fences = false;  // a mapping a buffer and trial is slow; guard zones watch
  measure::TrialRunner runner(device, std::make_unique<worker::Runner>(device, cache, options));
  const std::string meta_path = flags.folder + "/meta.json";
  const auto keep = [&] {
    json meta = {
        {"note", "recorded by bench/record_spaces.cc; time in ms; extents and device as plain numbers"},
        {"spaces", json::object()}};
    if (std::ifstream in(meta_path); in) meta = json::parse(in, nullptr, false);
    for (const auto& recorder : recorders) meta["spaces"].update(recorder->facts(device->spec()));
    std::ofstream(meta_path) << meta.dump(1) << "\n";
  };
  for (const auto& recorder : recorders) recorder->open();
  keep();
  constexpr size_t kTurn = 24;
  const auto prepare = [&](Recorder& r, const bench::TunedCase& c) {
    runner.prepare(c.workload, *plan::match_family(c.workload), r.facts_of_first(), r.ahead(2 * kTurn));
  };
  const auto case_of = [&](const Recorder& r) -> const bench::TunedCase& {
    return *std::find_if(cases.begin(), cases.end(),
                         [&](const bench::TunedCase& c) { return c.name == r.name(); });
  };
  double told = 0;
  for (bool more = true; more && seconds() < flags.limit_s;) {
    more = false;
    for (const auto& recorder : recorders) {
      prepare(*recorder, case_of(*recorder));
      for (size_t i = 0; i < kTurn && seconds() < flags.limit_s; ++i) more = recorder->step(runner) || more;
      if (seconds() - told < 10) continue;
      told = seconds();
      std::string line = fmt::format("{:.0f} s:", told);
      for (const auto& r : recorders)
        line += fmt::format(" {} {}/{} best {:.2f} us;", r->name(), r->done(), r->planned(), r->best_us(0));
      fmt::print("{}\n", line);
      std::fflush(stdout);
    }
  }
  keep();
  for (const auto& r : recorders)
    fmt::print("{}: {} of {} after {:.0f} s ({:.0f} s at the first extent, {:.0f} s at the others)\n",
               r->name(), r->done(), r->planned(), seconds(), r->gate_s(), r->time_s());
  for (const std::string& note : runner.place().notes()) fmt::print("{}\n", note);
  if (flags.kernels.empty()) std::filesystem::remove_all(kernels);
}

}  // namespace

int main(int argc, char** argv) {
  ::setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 0);
  if (const auto code = worker::serve_if_worker(argc, argv)) return *code;
  Flags flags;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i], value = argv[i + 1];
    if (flag == "--device")
      flags.device = value;
    else if (flag == "--folder")
      flags.folder = value;
    else if (flag == "--cases")
      flags.cases = value;
    else if (flag == "--kernels")
      flags.kernels = value;
    else if (flag == "--name")
      flags.name = value;
    else if (flag == "--most")
      flags.most = std::stoul(value);
    else if (flag == "--limit")
      flags.limit_s = std::stod(value);
    else if (flag == "--count")
      flags.count = value == "1";
    else {
      std::cerr << "no flag '" << flag << "'; the head of bench/record_spaces.cc names them\n";
      return 2;
    }
  }
  if (flags.folder.empty() && !flags.count) {
    std::cerr << "--folder DIR says where the tables go\n";
    return 2;
  }
  try {
    record(bench::recorded_cases(), flags, flow::open_target(flags.device).device);
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  return 0;
}
