#include "backend/backends_json.h"

#include <nlohmann/json.hpp>

namespace thrice::backend {

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
          {"uuid", d.uuid},
          {"is_cpu", d.is_cpu},
          {"compute_units", d.compute_units},
          {"max_threads_per_block", d.max_threads_per_block},
          {"max_shared_bytes", d.max_shared_bytes},
          {"memory_bytes", d.memory_bytes},
          {"l2_bytes", d.l2_bytes},
          {"has_f64", d.has_f64},
          {"has_f16_arithmetic", d.has_f16_arithmetic},
          {"cublaslt", d.cublaslt},
          {"cudnn", d.cudnn}};
}

}  // namespace

std::string backends_json(const std::vector<BackendReport>& backends) {
  nlohmann::json j = {{"backends", nlohmann::json::array()}};
  for (const auto& b : backends) {
    nlohmann::json row = {{"name", b.name},
                          {"available", b.available},
                          {"reason", b.reason},
                          {"devices", nlohmann::json::array()}};
    for (const auto& d : b.devices) row["devices"].push_back(json_of(d));
    j["backends"].push_back(row);
  }
  return j.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace thrice::backend
