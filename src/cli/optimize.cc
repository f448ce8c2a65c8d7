// thrice optimize: model file -> verified, faster release.
#include "flow/optimize.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include "base/file.h"
#include "cli/agent_page.h"
#include "cli/commands.h"
#include "cli/live_line.h"
#include "cli/model_options.h"
#include "cli/plan_page.h"
#include "cli/session_options.h"
#include "flow/replay.h"
#include "report/table.h"

namespace thrice::cli {

namespace {

void print_report(const flow::OptimizeReport& r) {
  report::Table table({"region", "uses", "family", "tactic and parameters", "original us", "now us",
                       "speed-up", "error", "of light", "trials"});
  for (const flow::RegionReport& g : r.regions) {
    const std::string tactic = g.schedule.substr(g.schedule.find('/') + 1);
    table.add({g.name, std::to_string(g.uses), g.family, tactic,
               g.original_us >= 0 ? fmt::format("{:.1f}", g.original_us) : "-",
               fmt::format("{:.1f}", g.now_us),
               g.original_us > 0 ? fmt::format("{:.2f}x", g.original_us / g.now_us) : "-",
               g.error >= 0 ? fmt::format("{:.1e}", g.error) : "-",
               g.light_share >= 0 ? fmt::format("{:.0f}%", 100 * g.light_share) : "-",
               fmt::format("{}{}", g.trials, g.ended.empty() ? "" : " (" + g.ended + ")")});
  }
  fmt::print("{}\n", table.str({0, 2, 3}, 40));
  if (r.trials > 0)
    fmt::print(
        "trials: one budget; the next goes to the region with the most (time in the model) x 2^(-trials "
        "since "
        "its last gain / 6); in brackets: why a region got no more\n");
  if (r.best_us > 0)
    fmt::print("{} on {}: original {} -> {} = {:.2f}x, {:.1f} a second\n", r.model, r.device,
               report::microseconds(r.original_us), report::microseconds(r.best_us), r.speedup,
               r.throughput_per_s);
  for (const flow::LengthReport& l : r.lengths)
    fmt::print("  {} = {}: original {} -> {} = {:.2f}x\n", r.length_symbol, l.length,
               report::microseconds(l.original_us), report::microseconds(l.best_us),
               l.original_us / l.best_us);
  if (r.max_error >= 0)
    fmt::print("error {:.2e} of a limit of {:.2e} against float64: {}\n", r.max_error, r.error_limit,
               r.verified ? "verified" : "NOT verified");
  if (r.peak_bytes >= 0)
    fmt::print("device memory {} (original {}) beside weights of {}, which take {} there; {} trials\n",
               report::bytes(static_cast<double>(r.peak_bytes)),
               report::bytes(static_cast<double>(r.original_peak_bytes)),
               report::bytes(static_cast<double>(r.constant_bytes)),
               report::bytes(static_cast<double>(r.held_weight_bytes)), r.trials);
  std::string phases;
  for (const flow::PhaseTime& p : r.phases)
    phases += fmt::format("{}{} {:.1f} s", phases.empty() ? "" : ", ", p.phase, p.seconds);
  fmt::print("time: {}\n", phases);
  if (r.usable_s >= 0)
    fmt::print("usable {:.1f} s after import: by then every region had a built and checked kernel\n",
               r.usable_s);
  if (r.first_release_s >= 0)
    fmt::print("first verified release {:.1f} s after the start\n", r.first_release_s);
  if (r.best_sustained_us > 0)
    fmt::print("back to back: {} after a rest, {} under lasting load\n",
               report::microseconds(r.best_burst_us), report::microseconds(r.best_sustained_us));
  for (const std::string& note : r.notes) fmt::print("note: {}\n", note);
  if (r.cancelled)
    fmt::print("stopped early: this is the best so far; run again to go on from the stored trials\n");
  if (!r.release.empty()) fmt::print("release: {}\n", r.release);
}

void print_replay(const flow::ReplayReport& r) {
  report::Table table(
      {"region", "uses", "recorded", "trials", "default us", "chosen us", "best us", "chosen schedule"});
  for (const flow::ReplayedWorkload& w : r.workloads)
    table.add({w.region, std::to_string(w.uses), std::to_string(w.recorded), std::to_string(w.trials),
               fmt::format("{:.1f}", w.default_us), fmt::format("{:.1f}", w.chosen_us),
               fmt::format("{:.1f}", w.best_us), w.schedule});
  fmt::print("{}\n", table.str({0, 7}, 60));
  if (!r.workloads.empty())
    fmt::print("{} replayed by {}: {} trials, default {} -> {}, best of the file {}\n", r.file, r.agent,
               r.trials, report::microseconds(r.default_us), report::microseconds(r.chosen_us),
               report::microseconds(r.best_us));
  for (const std::string& note : r.notes) fmt::print("note: {}\n", note);
}

// No model and no device: only what the search is told by flags and settings.
int replay(const Arguments& arguments, const flow::Settings& settings) {
  if (arguments.get("MODEL") || arguments.has("--record"))
    throw Error(Code::kInvalidArgument,
                "--replay takes everything from its file: thrice optimize --replay FILE, without a model");
  const flow::ReplayReport report = flow::replay(*arguments.get("--replay"), settings, {});
  if (arguments.has("--json"))
    fmt::print("{}\n", report.to_json());
  else
    print_replay(report);
  return 0;
}

LiveLine::Form progress_form(const Arguments& arguments) {
  if (arguments.has("--quiet")) return LiveLine::Form::kNone;
  const std::string name = arguments.get("--progress", "line");
  if (name == "line") return LiveLine::Form::kLine;
  if (name == "json") return LiveLine::Form::kJson;
  throw Error(Code::kInvalidArgument, fmt::format("--progress: '{}' is neither line nor json", name));
}

int run(const Arguments& arguments) {
  flow::OptimizeRequest request;
  request.settings = settings_from(arguments);
  if (const auto text = arguments.get("--budget")) try {
      request.settings.budget_s = flow::parse_duration(*text);
    } catch (const Error& e) {
      throw Error(e.code(), fmt::format("--budget: {}", e.what()));
    }
  if (const auto text = arguments.get("--memory-budget")) try {
      request.settings.memory_budget_bytes = flow::parse_bytes(*text);
    } catch (const Error& e) {
      throw Error(e.code(), fmt::format("--memory-budget: {}", e.what()));
    }
  request.settings.lengths = arguments.get("--lengths", request.settings.lengths);
  request.settings.max_trials = arguments.integer("--trials", request.settings.max_trials);
  if (request.settings.max_trials < 0)
    throw Error(Code::kInvalidArgument, "--trials: a number of trials is not negative");
  request.settings.agent = arguments.get("--agent", request.settings.agent);
  request.settings.agent_file = arguments.get("--agent-file", request.settings.agent_file);
  request.settings.in_place = arguments.get("--in-place", request.settings.in_place);
  if (request.settings.in_place != "auto" && request.settings.in_place != "on" &&
      request.settings.in_place != "off")
    throw Error(Code::kInvalidArgument,
                fmt::format("--in-place: '{}' is neither auto, on nor off", request.settings.in_place));
  if (arguments.has("--check-races")) request.settings.check_races = true;
  if (arguments.has("--no-pretrained")) request.settings.pretrained = false;
  request.settings.planner = arguments.get("--planner", request.settings.planner);
  request.settings.seed =
      static_cast<uint64_t>(arguments.integer("--seed", static_cast<int64_t>(request.settings.seed)));
  if (arguments.has("--replay")) return replay(arguments, request.settings);
  if (!arguments.get("MODEL"))
    throw Error(Code::kInvalidArgument,
                "optimize needs a MODEL (or --replay FILE); see thrice optimize --help");
  request.model_path = *arguments.get("MODEL");
  request.import = import_options(arguments);
  if (const auto mask = arguments.get("--packed-mask"))
    request.packed_mask = *mask;
  else if (arguments.has("--packed"))
    request.packed_mask = "";
  request.tune = !arguments.has("--no-tune") && !arguments.has("--reweight");
  if (!arguments.has("--in-process")) request.worker = "/proc/self/exe";
  request.record_path = arguments.get("--record", "");
  if (const auto page = arguments.get("--html")) refuse_overwriting(request.model_path, *page, "--html");
  refuse_overwriting(request.model_path, request.record_path, "--record");
  std::string output = arguments.get("--output", "");
  if (output.empty()) {
    output = request.model_path.substr(request.model_path.find_last_of('/') + 1);
    output = output.substr(0, output.rfind('.')) + ".thrice";
  }
  refuse_overwriting(request.model_path, output, "--output");
  request.release_path = output;
  std::vector<std::string> assumed;
  request.bindings = [&](const ir::Graph& graph) { return bindings_for(graph, arguments, &assumed); };
  flow::OptimizeReport report;
  {
    LiveLine live(progress_form(arguments));
    request.listener = live.listener();
    report = flow::optimize(request);
  }
  for (const std::string& note : assumed)
    if (report.length_symbol.empty() || note.rfind(report.length_symbol + " = ", 0) != 0)
      report.notes.push_back("assumed " + note);
  if (const auto page = arguments.get("--html"))
    write_file_atomic(*page, optimize_page(report, plan_sections(report, arguments)));
  if (arguments.has("--json"))
    fmt::print("{}\n", report.to_json());
  else
    print_report(report);
  return 0;
}

}  // namespace

Command optimize_command() {
  std::vector<Option> options = model_options();
  for (const Option& o : settings_options()) options.push_back(o);
  for (const Option& o : std::vector<Option>{
           {"--output", "FILE", "release to write (default: MODEL's name with .thrice)"},
           {"--budget", "TIME", "tuning time, e.g. 90s, 10m (default 10m)"},
           {"--trials", "N", "most trials (default 1000)"},
           {"--packed", "",
            "padded sequences are computed without their padding: one mask input of [batch, length]"},
           {"--packed-mask", "INPUT", "the same, with this input (1: counts, 0: padding) as the mask"},
           {"--memory-budget", "SIZE", "most device memory of a session at these extents, e.g. 400MB"},
           {"--lengths", "SPEC",
            "requests' lengths, [NAME=]uniform:1-512 or [NAME=]FILE: tunes at several, splits into buckets"},
           {"--in-place", "WHEN",
            "results over operands that nothing reads later: auto (default: not on CUDA) | on | off"},
           {"--agent", "NAME",
            "actor_critic (default) | value | ppo | genetic | annealing | greedy | random"},
           {"--agent-file", "FILE", "trained agent (thrice agent train); default: the one in the program"},
           {"--no-pretrained", "", "nothing learned elsewhere is used"},
           {"--planner", "NAME", "greedy | dp | original"},
           {"--seed", "N", "random seed of agent and inputs (default 1)"},
           {"--no-tune", "", "no trial of the search: rule-chosen schedules, or what the store has"},
           {"--reweight", "",
            "chooses anew among stored trials by the reward weights; no trial of the search"},
           {"--in-process", "", "trials in this process, without isolation or limits (default: in workers)"},
           {"--check-races", "",
            "chosen kernels under compute-sanitizer (CUDA) or oclgrind (OpenCL), which must be installed"},
           {"--record", "FILE", "appends every trial to a CSV file"},
           {"--replay", "FILE", "tunes against such a file: no MODEL, no device, nothing written"},
           {"--html", "FILE", "one page: what was tried and the best so far, region by region"},
           {"--progress", "FORM", "line (default) | json: one object a line on standard error"},
           {"--quiet", "", "no progress line"}})
    options.push_back(o);
  return {"optimize",
          "make a verified, faster release of a model",
          "thrice optimize model.onnx --dims batch=1 --budget 2m --output model.thrice",
          {{"MODEL", "ONNX file", false}},
          options,
          run};
}

}  // namespace thrice::cli
