// thrice devices: every device with its limits, why a back end is missing, and what host and cards do now.
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <thrice/status.h>
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "backend/backends_json.h"
#include "cli/commands.h"
#include "flow/settings.h"
#include "hardware/sampler.h"
#include "report/live_state.h"
#include "report/table.h"

namespace thrice::cli {

namespace {

constexpr double kIntervalMs = 100;

// At most as many characters as the terminal is wide: a line that wraps would break the redrawing.
std::string cut_to_terminal(const std::string& line) {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return line;
  size_t at = 0;
  for (int shown = 0; at < line.size(); ++at) {
    const bool begins = (line[at] & 0xC0) != 0x80;  // not in the middle of an UTF-8 character
    if (begins && shown++ == size.ws_col) break;
  }
  return line.substr(0, at);
}

// Live state again and again: redrawn in place on a terminal, else a line for host and each card a sample.
int watch(const Arguments& arguments) {
  double interval_ms = kIntervalMs;
  if (const auto text = arguments.get("--interval")) interval_ms = 1e3 * flow::parse_duration(*text);
  if (!(interval_ms >= 10 && interval_ms <= 3.6e6))
    throw Error(Code::kInvalidArgument, "--interval: from 10ms to 1h");
  const int64_t count = arguments.integer("--count", 0);
  if (count < 0) throw Error(Code::kInvalidArgument, "--count: 0 (until Ctrl-C) or more");
  const bool redraws = !arguments.has("--json") && isatty(STDOUT_FILENO) != 0;
  const hardware::Sampler sampler(hardware::system_source(), interval_ms, 16);
  hardware::Snapshot before = sampler.next(0);  // rates and shares begin with the second sample
  for (int64_t shown = 0; count == 0 || shown < count; ++shown) {
    const hardware::Snapshot now = sampler.next(before.time_us);
    if (arguments.has("--json")) {
      fmt::print("{}\n", report::live_json(now, &before));
    } else {
      const std::vector<std::string> lines = report::live_lines(now, &before);
      if (redraws && shown > 0) fmt::print("\033[{}F\033[J", lines.size());
      for (const std::string& line : lines) fmt::print("{}\n", redraws ? cut_to_terminal(line) : line);
    }
    if (std::fflush(stdout) != 0) throw Error(Code::kIo, "cannot write to standard output");
    before = now;
  }
  return 0;
}

int run(const Arguments& arguments) {
  if (arguments.has("--watch")) return watch(arguments);
  for (const char* flag : {"--interval", "--count"})
    if (arguments.has(flag)) throw Error(Code::kInvalidArgument, fmt::format("{}: only with --watch", flag));
  // Samples while the back ends are asked; two are needed for shares and rates.
  const hardware::Sampler sampler(hardware::system_source(), kIntervalMs);
  const hardware::Snapshot before = sampler.next(0);
  const std::vector<backend::BackendReport> backends = backend::list_backends();
  const hardware::Snapshot now = sampler.next(before.time_us);
  if (arguments.has("--json")) {
    nlohmann::json j = nlohmann::json::parse(backend::backends_json(backends));
    j["live"] = nlohmann::json::parse(report::live_json(now, &before));
    fmt::print("{}\n", j.dump(2));
    return 0;
  }
  report::Table table({"id", "device", "driver", "units", "threads/block", "shared", "memory", "f64"});
  for (const auto& b : backends)
    for (const auto& d : b.devices)
      table.add({d.id, d.name, d.driver, std::to_string(d.compute_units),
                 std::to_string(d.max_threads_per_block),
                 report::bytes(static_cast<double>(d.max_shared_bytes)),
                 report::bytes(static_cast<double>(d.memory_bytes)), d.has_f64 ? "yes" : "no"});
  fmt::print("{}", table.str({0, 1, 2}, 60));
  for (const auto& b : backends) {
    if (!b.available) fmt::print("no {}: {}\n", b.name, b.reason);
    for (const auto& [library, reason] : b.without)
      fmt::print("{} without {}: {}\n", b.name, library, reason);
  }
  for (const auto& b : backends)
    for (const auto& d : b.devices) {
      if (!d.cublaslt.empty()) fmt::print("{} calls cuBLASLt {}\n", d.id, d.cublaslt);
      if (!d.cudnn.empty()) fmt::print("{} calls cuDNN {}\n", d.id, d.cudnn);
    }
  fmt::print("now:\n");
  for (const std::string& line : report::live_lines(now, &before)) fmt::print("{}\n", line);
  return 0;
}

}  // namespace

Command devices_command() {
  return {"devices",
          "list devices, their limits, what they do now, and why a back end is missing",
          "thrice devices --watch --interval 500ms",
          {},
          {{"--watch", "", "live state again and again until Ctrl-C"},
           {"--interval", "TIME", "with --watch: time between two samples (default 100ms)"},
           {"--count", "N", "with --watch: stop after N samples"}},
          run};
}

}  // namespace thrice::cli
