// thrice run: answers from a release; checked, bisected, traced where asked.
#include <fmt/format.h>
#include <thrice/status.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/model_options.h"
#include "cli/session_options.h"
#include "flow/bisect.h"
#include "frontend/npy.h"
#include "report/trace.h"

namespace thrice::cli {

namespace {

void write_trace(const std::string& path, runtime::Session& session, const std::vector<ir::Tensor>& inputs) {
  std::vector<report::TraceSpan> spans;
  exec::RunOptions options;
  options.observe = [&](const exec::StepEvent& event) {
    spans.push_back({event.code->name,
                     event.code->step->kind == artifact::StepKind::kRegion ? event.code->step->schedule.str()
                                                                           : "host or view",
                     event.device_us});
  };
  session.run(inputs);  // first launches specialise kernels on some devices; the trace shows a later run
  session.run(inputs, options);
  write_file_atomic(path, report::perfetto_trace(session.code()->device->spec().name, spans));
}

nlohmann::json steps_json(const std::vector<flow::StepCheck>& steps) {
  nlohmann::json list = nlohmann::json::array();
  for (const auto& s : steps)
    list.push_back({{"name", s.name},
                    {"schedule", s.schedule},
                    {"error", s.error},
                    {"limit", s.limit},
                    {"ok", s.ok},
                    {"reason", s.reason}});
  return list;
}

// Prints the verdict; returns whether all is right.
bool check(const Arguments& arguments, runtime::Session& session, const std::vector<ir::Tensor>& inputs,
           nlohmann::json& j) {
  const flow::RunCheck result = flow::check_run(session.executor(), inputs, arguments.has("--bisect"));
  j["check"] = {
      {"ok", result.ok}, {"outputs", steps_json(result.outputs)}, {"steps", steps_json(result.steps)}};
  if (arguments.has("--json")) return result.ok;
  for (const auto& o : result.outputs)
    fmt::print("check: output '{}': error {:.2e}: {}\n", o.name, o.error,
               !o.ok              ? "WRONG: " + o.reason
               : o.reason.empty() ? "right"
                                  : "NaN and infinities agree; " + o.reason);
  if (!arguments.has("--bisect")) return result.ok;
  if (!result.steps.empty() && !result.steps.back().ok) {
    const auto& s = result.steps.back();
    fmt::print("bisect: first wrong region is step {} of segment {}: {} [{}]: {}\n", s.step, s.segment,
               s.name, s.schedule, s.reason);
  } else {
    fmt::print("bisect: all {} regions are right\n", result.steps.size());
  }
  return result.ok;
}

int run(const Arguments& arguments) {
  const flow::Settings settings = settings_from(arguments);
  const auto session = open_session(*arguments.get("RELEASE"), settings);
  const ir::Graph& graph = *session->release().graph;
  std::vector<std::string> notes;
  const std::vector<ir::Tensor> inputs = inputs_from(graph, arguments, &notes);
  const std::vector<ir::Tensor> outputs = session->run(inputs);

  nlohmann::json j = {{"release", *arguments.get("RELEASE")},
                      {"device", session->code()->device->spec().name},
                      {"notes", notes}};
  j["outputs"] = nlohmann::json::array();
  if (!arguments.has("--json"))
    for (const std::string& note : notes) fmt::print("note: {}\n", note);
  const std::string folder = arguments.get("--output", "");
  for (size_t o = 0; o < outputs.size(); ++o) {
    const std::string shape = ir::shape_str(ir::to_shape(outputs[o].shape()));
    j["outputs"].push_back({{"name", graph.output_names[o]},
                            {"dtype", dtype_name(outputs[o].dtype())},
                            {"shape", outputs[o].shape()}});
    if (!arguments.has("--json"))
      fmt::print("output {} {} {}\n", graph.output_names[o], dtype_name(outputs[o].dtype()), shape);
    if (folder.empty()) continue;
    // Numbered, not named: a tensor's name in a model may hold slashes or worse.
    std::filesystem::create_directories(folder);
    frontend::write_npy(fmt::format("{}/out_{}.npy", folder, o), outputs[o]);
  }
  bool ok = true;
  if (arguments.has("--check") || arguments.has("--bisect")) ok = check(arguments, *session, inputs, j);
  if (const auto path = arguments.get("--trace")) write_trace(*path, *session, inputs);
  if (arguments.has("--json"))
    fmt::print("{}\n", j.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  return ok ? 0 : exit_code(Code::kWrongResult);
}

}  // namespace

Command run_command() {
  std::vector<Option> options = settings_options();
  for (const Option& o :
       std::vector<Option>{{"--input", "[NAME=]FILE", "an input as .npy; inputs not given are random", true},
                           {"--dims", "NAME=N,...", "extents of random inputs", true},
                           {"--seed", "N", "seed of random inputs (default 1)"},
                           {"--output", "FOLDER", "write results as out_0.npy, out_1.npy, ..."},
                           {"--check", "", "compare with float64; exit code 12 when wrong"},
                           {"--bisect", "", "with the check: find the first region that is wrong"},
                           {"--trace", "FILE", "write a Perfetto trace of one run"}})
    options.push_back(o);
  return {"run",
          "run a release once",
          "thrice run model.thrice --input x=image.npy --check",
          {{"RELEASE", "file written by thrice optimize"}},
          options,
          run};
}

}  // namespace thrice::cli
