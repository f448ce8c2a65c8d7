#include "artifact/manifest.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <nlohmann/json.hpp>

namespace thrice::artifact {

using json = nlohmann::json;

namespace {
constexpr int kFormatVersion = 1;

json tensors_json(const std::vector<ManifestTensor>& tensors) {
  json list = json::array();
  for (const ManifestTensor& t : tensors)
    list.push_back({{"name", t.name}, {"dtype", t.dtype}, {"shape", t.shape}});
  return list;
}
std::vector<ManifestTensor> tensors_from(const json& list) {
  std::vector<ManifestTensor> tensors;
  for (const json& t : list) tensors.push_back({t.at("name"), t.at("dtype"), t.at("shape")});
  return tensors;
}
}  // namespace

std::string Manifest::to_json() const {
  json j = {{"format_version", format_version},
            {"product_version", product_version},
            {"model_name", model_name},
            {"model_digest", model_digest},
            {"plan_digest", plan_digest},
            {"numerics", numerics},
            {"device_name", device_name},
            {"device_id", device_id},
            {"device_key", device_key},
            {"driver", driver},
            {"compiler", compiler},
            {"timed_at", timed_at},
            {"verified", verified},
            {"max_error", max_error},
            {"error_limit", error_limit},
            {"original_us", original_us},
            {"best_us", best_us},
            {"trials", trials},
            {"peak_bytes", peak_bytes},
            {"original_peak_bytes", original_peak_bytes},
            {"inputs", tensors_json(inputs)},
            {"outputs", tensors_json(outputs)},
            {"slow_steps", slow_steps},
            {"metadata", metadata}};
  if (!memory_front.empty()) {
    j["memory_front"] = json::array();
    for (const MemoryPoint& p : memory_front)
      j["memory_front"].push_back({{"bytes", p.bytes}, {"time_us", p.time_us}, {"change", p.change}});
  }
  j["programs"] = json::array();
  for (const ManifestProgram& p : programs)
    j["programs"].push_back({{"workload", p.workload},
                             {"schedule", p.schedule},
                             {"source_key", p.source_key},
                             {"kernels", p.kernels}});
  if (!decisions.empty()) j["decisions"] = json::parse(decisions_json(decisions));
  j["binaries"] = json::array();
  for (const ManifestBinary& b : binaries)
    j["binaries"].push_back({{"source_key", b.source_key},
                             {"format", b.format},
                             {"architecture", b.architecture},
                             {"offset", b.offset},
                             {"bytes", b.bytes}});
  return j.dump(1, ' ', false, json::error_handler_t::replace);
}

Manifest Manifest::from_json(const std::string& text) {
  try {
    const json j = json::parse(text);
    Manifest m;
    m.format_version = j.at("format_version");
    if (m.format_version > kFormatVersion)
      throw Error(Code::kUnsupported,
                  fmt::format("the release has format {}, this thrice reads up to {}: update thrice",
                              m.format_version, kFormatVersion));
    m.product_version = j.at("product_version");
    m.model_name = j.at("model_name");
    m.model_digest = j.at("model_digest");
    m.plan_digest = j.at("plan_digest");
    m.numerics = j.at("numerics");
    m.device_name = j.at("device_name");
    m.device_id = j.at("device_id");
    m.device_key = j.at("device_key");
    m.driver = j.at("driver");
    m.compiler = j.at("compiler");
    m.timed_at = j.at("timed_at");
    m.verified = j.at("verified");
    m.max_error = j.at("max_error");
    m.error_limit = j.at("error_limit");
    m.original_us = j.at("original_us");
    m.best_us = j.at("best_us");
    m.trials = j.at("trials");
    m.peak_bytes = j.at("peak_bytes");
    m.original_peak_bytes = j.at("original_peak_bytes");
    m.inputs = tensors_from(j.at("inputs"));
    m.outputs = tensors_from(j.at("outputs"));
    m.slow_steps = j.at("slow_steps").get<std::vector<std::string>>();
    m.metadata = j.at("metadata").get<std::map<std::string, std::string>>();
    if (j.contains("memory_front"))
      for (const json& p : j.at("memory_front"))
        m.memory_front.push_back({p.at("bytes"), p.at("time_us"), p.at("change")});
    for (const json& p : j.at("programs"))
      m.programs.push_back({p.at("workload"), p.at("schedule"), p.at("source_key"),
                            p.at("kernels").get<std::vector<std::string>>()});
    for (const json& b : j.at("binaries"))
      m.binaries.push_back(
          {b.at("source_key"), b.at("format"), b.at("architecture"), b.at("offset"), b.at("bytes")});
    if (j.contains("decisions")) m.decisions = decisions_from_json(j.at("decisions").dump());
    return m;
  } catch (const json::exception& e) {
    throw Error(Code::kCorrupt, fmt::format("release manifest: {}", e.what()));
  }
}

}  // namespace thrice::artifact
