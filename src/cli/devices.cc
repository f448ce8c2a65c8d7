// thrice devices: every device with its limits, and why a back end is missing.
#include <fmt/format.h>

#include "backend/backends_json.h"
#include "cli/commands.h"
#include "report/table.h"

namespace thrice::cli {

namespace {

int run(const Arguments& arguments) {
  const std::vector<backend::BackendReport> backends = backend::list_backends();
  if (arguments.has("--json")) {
    fmt::print("{}\n", backend::backends_json(backends));
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
  for (const auto& b : backends)
    if (!b.available) fmt::print("no {}: {}\n", b.name, b.reason);
  return 0;
}

}  // namespace

Command devices_command() {
  return {
      "devices", "list devices, their limits, and why a back end is missing", "thrice devices --json", {}, {},
      run};
}

}  // namespace thrice::cli
