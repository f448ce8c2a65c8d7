// thrice devices: every device with its limits, and why a back end is missing.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "backend/backend.h"
#include "cli/commands.h"
#include "report/table.h"

namespace thrice::cli {

namespace {

const char* api_name(target::Api api) {
  switch (api) {
    case target::Api::kNull:
      return "null";
    case target::Api::kOpenCL:
      return "opencl";
    case target::Api::kCuda:
      return "cuda";
  }
  return "?";
}

nlohmann::json json_of(const target::DeviceSpec& d) {
  return {{"id", d.id},
          {"api", api_name(d.api)},
          {"name", d.name},
          {"driver", d.driver},
          {"architecture", d.architecture},
          {"is_cpu", d.is_cpu},
          {"compute_units", d.compute_units},
          {"max_threads_per_block", d.max_threads_per_block},
          {"max_shared_bytes", d.max_shared_bytes},
          {"memory_bytes", d.memory_bytes},
          {"l2_bytes", d.l2_bytes},
          {"has_f64", d.has_f64},
          {"has_f16_arithmetic", d.has_f16_arithmetic}};
}

int run(const Arguments& arguments) {
  const std::vector<backend::BackendReport> backends = backend::list_backends();
  if (arguments.has("--json")) {
    nlohmann::json j = {{"backends", nlohmann::json::array()}};
    for (const auto& b : backends) {
      nlohmann::json row = {{"name", b.name},
                            {"available", b.available},
                            {"reason", b.reason},
                            {"devices", nlohmann::json::array()}};
      for (const auto& d : b.devices) row["devices"].push_back(json_of(d));
      j["backends"].push_back(row);
    }
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
