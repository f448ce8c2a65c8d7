// thrice agent: agents measured on recorded spaces, trained, looked into.
#include <fmt/format.h>
#include <thrice/status.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "cli/agent_page.h"
#include "cli/commands.h"
#include "cli/live_line.h"
#include "cli/session_options.h"
#include "flow/agent_eval.h"
#include "flow/agent_train.h"
#include "report/table.h"

namespace thrice::cli {
namespace {

std::string trials_text(const tune::Interval& i) {
  const auto one = [](double v) {
    return std::isfinite(v) ? fmt::format("{:.0f}", v) : std::string("never");
  };
  return fmt::format("{} [{}, {}]", one(i.value), one(i.low), one(i.high));
}
std::string share_text(const tune::Interval& i) {
  return fmt::format("{:.3f} +-{:.3f}", i.value, 0.5 * (i.high - i.low));
}

void print_eval(const flow::EvalReport& report) {
  report::Table table({"space", "agent", "score P", "after 50", "after 100", "after 500", "trials to 95%",
                       "reached", "CPU s"});
  for (const flow::AgentOnSpace& r : report.results)
    table.add({r.space, r.agent, share_text(r.score), share_text(r.at_50), share_text(r.at_100),
               share_text(r.at_500), trials_text(r.trials_to_95), fmt::format("{:.0f}%", 100 * r.reached),
               fmt::format("{:.2f}", r.cpu_s)});
  for (const flow::AgentTotal& r : report.totals)
    table.add({fmt::format("all {}", r.spaces), r.agent, share_text(r.score), share_text(r.at_50),
               share_text(r.at_100), share_text(r.at_500), trials_text(r.trials_to_95),
               fmt::format("{:.0f}%", 100 * r.reached), fmt::format("{:.2f}", r.cpu_s)});
  fmt::print("{}", table.str({0, 1}, 48));
  fmt::print("{} repeats of {} trials, noise {:.1f}%; best/optimum; 95% intervals\n", report.repeats,
             report.trials, 100 * report.noise);
}

std::vector<std::string> words_of(const std::string& list) {
  std::vector<std::string> words;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    if (end > begin) words.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

std::string needed(const Arguments& arguments, const std::string& flag, const char* what) {
  const auto value = arguments.get(flag);
  if (!value) throw Error(Code::kInvalidArgument, fmt::format("agent {}: {} is needed", what, flag));
  return *value;
}

double percent(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || (*end && std::string(end) != "%") || !(value >= 0 && value <= 100))
    throw Error(Code::kInvalidArgument,
                fmt::format("--noise: '{}' is no percentage between 0 and 100", text));
  return value / 100;
}

int eval(const Arguments& arguments) {
  flow::EvalRequest request;
  request.spaces = needed(arguments, "--spaces", "eval");
  if (const auto list = arguments.get("--agents")) request.agents = words_of(*list);
  request.repeats = arguments.integer("--repeats", request.repeats);
  request.trials = arguments.integer("--trials", request.trials);
  request.noise = percent(arguments.get("--noise", "0"));
  request.seed = static_cast<uint64_t>(arguments.integer("--seed", 1));
  request.jobs = static_cast<int>(std::clamp<int64_t>(arguments.integer("--jobs", 1), 1, 256));
  flow::EvalReport report;
  {
    LiveLine live(arguments.has("--quiet") ? LiveLine::Form::kNone : LiveLine::Form::kLine);
    request.listener = live.listener();
    report = flow::evaluate_agents(request);
  }
  if (const auto page = arguments.get("--html")) write_file_atomic(*page, eval_page(report));
  if (arguments.has("--json"))
    fmt::print("{}\n", report.to_json());
  else
    print_eval(report);
  return 0;
}

int tune_rivals(const Arguments& arguments) {
  const auto spaces = tune::read_spaces(needed(arguments, "--spaces", "tune-rivals"));
  LiveLine live(arguments.has("--quiet") ? LiveLine::Form::kNone : LiveLine::Form::kLine);
  const std::string text =
      flow::tune_rivals(spaces, arguments.integer("--tries", 200), arguments.integer("--repeats", 8),
                        static_cast<uint64_t>(arguments.integer("--seed", 1)), live.listener());
  if (const auto file = arguments.get("--output"))
    write_file_atomic(*file, text);
  else
    fmt::print("{}", text);
  return 0;
}

std::vector<tune::Task> tasks_from(const Arguments& arguments) {
  std::vector<tune::Task> tasks;
  for (const std::string& path : arguments.all("--from"))
    for (tune::Task& task : flow::read_tasks(path)) tasks.push_back(std::move(task));
  if (tasks.empty())
    throw Error(
        Code::kInvalidArgument,
        "there is nothing to learn from: --from STORE, recorded spaces or samples (it repeats); a store "
        "must hold trials of this version");
  return tasks;
}

int train(const Arguments& arguments) {
  const std::string output = needed(arguments, "--output", "train");
  tune::GroupNet::TrainOptions options;
  options.steps =
      static_cast<int>(std::clamp<int64_t>(arguments.integer("--steps", options.steps), 1, 10'000'000));
  options.members =
      static_cast<int>(std::clamp<int64_t>(arguments.integer("--members", options.members), 1, 16));
  options.seed = static_cast<uint64_t>(arguments.integer("--seed", 1));
  options.learning_rate *= static_cast<float>(settings_from(arguments).agent_config.learning_rate / 0.001);
  const tune::Knowledge knowledge = tune::train_knowledge(tasks_from(arguments), options);
  const std::string text = knowledge.str();
  write_file_atomic(output, text);
  fmt::print("{}: {} groups, {}\n", output, knowledge.nets.size(),
             report::bytes(static_cast<double>(text.size())));
  return 0;
}

int export_samples(const Arguments& arguments) {
  const std::string output = needed(arguments, "--output", "export");
  const bool has_source = !arguments.all("--from").empty();
  const std::string text = has_source ? flow::tasks_text(tasks_from(arguments))
                                      : flow::knowledge_of(settings_from(arguments)).str();
  write_file_atomic(output, text);
  fmt::print("{}: {}\n", output, report::bytes(static_cast<double>(text.size())));
  return 0;
}

int info(const Arguments& arguments) {
  flow::Settings settings = settings_from(arguments);
  if (const auto file = arguments.get("FILE")) settings.agent_file = *file;
  const tune::Knowledge knowledge = flow::knowledge_of(settings);
  const std::string name = settings.agent_file.empty() ? "the agent in this program" : settings.agent_file;
  if (arguments.has("--json")) {
    nlohmann::json j = {
        {"agent", name}, {"features", tune::Knowledge::kFeatureVersion}, {"groups", nlohmann::json::array()}};
    for (const auto& net : knowledge.nets)
      j["groups"].push_back({{"group", net->group()},
                             {"tasks", net->tasks()},
                             {"samples", net->samples()},
                             {"inputs", net->inputs()}});
    fmt::print("{}\n", j.dump(2));
    return 0;
  }
  report::Table table({"group", "tasks", "samples", "inputs"});
  for (const auto& net : knowledge.nets)
    table.add({net->group(), std::to_string(net->tasks()), std::to_string(net->samples()),
               std::to_string(net->inputs().size())});
  fmt::print("{}, features {}\n{}", name, tune::Knowledge::kFeatureVersion, table.str({0}, 90));
  return 0;
}

int run(const Arguments& arguments) {
  const std::string action = *arguments.get("ACTION");
  if (action == "eval") return eval(arguments);
  if (action == "train") return train(arguments);
  if (action == "export") return export_samples(arguments);
  if (action == "info") return info(arguments);
  if (action == "tune-rivals") return tune_rivals(arguments);
  throw Error(
      Code::kInvalidArgument,
      fmt::format("agent: unknown action '{}'; known: eval, train, export, info, tune-rivals", action));
}

}  // namespace

Command agent_command() {
  std::vector<Option> options = settings_options();
  for (const Option& o : std::vector<Option>{
           {"--spaces", "DIR",
            "eval, tune-rivals: recorded spaces (CSV, T4, Kernel Tuner caches; .gz), or `synthetic`"},
           {"--agents", "A,B",
            "eval: NAME[:FLAG...], flags no_policy no_crossover no_local no_mask no_race transfer KNOB=N"},
           {"--repeats", "N", "eval: runs of each agent on each space (default 32)"},
           {"--trials", "N", "eval: trials of a run (default 500)"},
           {"--noise", "PCT", "eval: standard deviation of a measurement in per cent (default 0)"},
           {"--jobs", "N", "eval: threads (default 1)"},
           {"--html", "FILE", "eval: one page with curves, readable without a network"},
           {"--quiet", "", "no progress line"},
           {"--from", "PATH", "train, export: a store, recorded spaces, or exported samples; repeats", true},
           {"--steps", "N", "train: steps a network (default 4000)"},
           {"--members", "N", "train: networks a group (default 2)"},
           {"--tries", "N", "tune-rivals: settings looked at an agent and half (default 200)"},
           {"--seed", "N", "random seed (default 1)"},
           {"--output", "FILE", "train, export, tune-rivals: file to write"}})
    options.push_back(o);
  return {
      "agent",
      "compare, train, export or show search agents",
      "thrice agent eval --spaces build/release/data/spaces --agents random,actor_critic --repeats 4",
      {{"ACTION", "eval | train | export | info | tune-rivals"}, {"FILE", "for info: an agent file", false}},
      options,
      run};
}

}  // namespace thrice::cli
