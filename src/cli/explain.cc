// thrice explain: what is inside a release, in words and numbers.
#include <fmt/format.h>
#include <thrice/status.h>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/release_memory.h"
#include "ir/region_name.h"
#include "plan/planner.h"
#include "release/release.h"
#include "report/decisions.h"
#include "report/memory.h"
#include "report/table.h"

namespace thrice::cli {

namespace {

int run(const Arguments& arguments) {
  const release::Release release = release::read_release(*arguments.get("RELEASE"));
  const artifact::Manifest& m = release.manifest;
  std::string memory_text, memory_json;
  try {
    const ReleaseMemory found = release_memory(release, arguments);
    memory_text = report::memory_text(found.memory, found.extents);
    memory_json = report::memory_json(found.memory, found.extents);
  } catch (const Error& error) {
    if (error.code() == Code::kInvalidArgument) throw;  // --dims
    memory_text = fmt::format("device memory: not known: {}\n", error.what());
    memory_json = "null";
  }
  if (arguments.has("--json")) {
    nlohmann::json j = {{"manifest", nlohmann::json::parse(m.to_json())},
                        {"plan", nlohmann::json::parse(release.plan->to_json())},
                        {"memory", nlohmann::json::parse(memory_json)}};
    fmt::print("{}\n", j.dump(2));
    return 0;
  }
  fmt::print("{}: made by thrice {} for {} ({})\n", *arguments.get("RELEASE"), m.product_version,
             m.device_name, m.device_id);
  for (const auto& t : m.inputs) fmt::print("  input  {} {} {}\n", t.name, t.dtype, t.shape);
  for (const auto& t : m.outputs) fmt::print("  output {} {} {}\n", t.name, t.dtype, t.shape);
  if (m.best_us > 0)
    fmt::print("original {} -> {} = {:.2f}x at {}\n", report::microseconds(m.original_us),
               report::microseconds(m.best_us), m.original_us / m.best_us,
               m.timed_at.empty() ? "fixed shapes" : m.timed_at);
  if (m.verified)
    fmt::print("verified: error {:.2e} of a limit of {:.2e}\n", m.max_error, m.error_limit);
  else
    fmt::print("NOT verified\n");
  fmt::print("planner '{}': {} segments (a segment ends where the host must look at a value)\n",
             release.plan->planner, release.plan->segments.size());
  if (!m.decisions.empty()) fmt::print("\n{}", report::decisions_text(m.decisions));
  const ir::Graph& graph = *release.graph;
  report::Table table({"step", "kind", "operators", "why / schedule"});
  int number = 0;
  for (const auto& segment : release.plan->segments)
    for (const auto& step : segment.steps) {
      std::string kind, why;
      switch (step.kind) {
        case artifact::StepKind::kRegion:
          kind = "kernel";
          why = step.schedule.str();
          break;
        case artifact::StepKind::kAlias:
          kind = "view";
          why = "same bytes, nothing runs";
          break;
        case artifact::StepKind::kHost:
          kind = "host";
          why = step.slow ? "no device kernel: --allow-slow" : "a size depends on data, or shape arithmetic";
          break;
        case artifact::StepKind::kControl:
          kind = "control";
          why = "the host decides how often the body runs";
          break;
      }
      for (const auto& bucket : step.buckets)
        table.add({std::to_string(number), kind,
                   fmt::format("{} up to {}", release.plan->bucket_symbol, bucket.up_to),
                   bucket.schedule.str()});
      table.add({std::to_string(number++), kind, ir::region_name(graph, step.nodes), why});
    }
  fmt::print("\n{}\n{}{}", table.str({1, 2, 3}, 70), memory_text, report::front_text(m.memory_front));
  if (arguments.has("--source"))
    for (const auto& source : release.sources)
      fmt::print("\n// ---- {} {}\n{}\n", artifact::language_name(source.language), source.key, source.text);
  return 0;
}

}  // namespace

Command explain_command() {
  return {"explain",
          "show what a release holds and why",
          "thrice explain model.thrice",
          {{"RELEASE", "file written by thrice optimize"}},
          {{"--source", "", "print the kernels' source too"},
           {"--dims", "NAME=N,...", "extents to tell the memory for (default: those it was timed at)", true}},
          run};
}

}  // namespace thrice::cli
