// thrice doctor: what is missing on this machine, and the command that mends it.
#include <fmt/format.h>
#include <thrice/status.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "backend/backend.h"
#include "base/file.h"
#include "cli/commands.h"
#include "cli/session_options.h"
#include "report/table.h"
#include "store/store.h"
#include "worker/race_check.h"

namespace thrice::cli {

namespace {

struct Finding {
  std::string what;
  bool ok = false, is_needed = true;
  std::string detail, remedy;
};

// Version of the NVRTC that would be used, or why there is none.
Finding find_nvrtc() {
  Finding f{"NVRTC (builds CUDA kernels)", false, false, "", ""};
  try {
    const std::string version = backend::cross_compiler("sm_90a")->version();
    f.detail = version.substr(0, version.find(" sm_"));
    f.ok = true;
  } catch (const Error& e) {
    f.detail = e.what();
    f.remedy = "pip install nvidia-cuda-nvrtc, and put its lib folder on LD_LIBRARY_PATH";
  }
  return f;
}

std::vector<Finding> examine(const flow::Settings& settings) {
  std::vector<Finding> findings;
  const auto backends = backend::list_backends();
  for (const auto& b : backends) {
    if (b.name == "null") continue;
    std::string devices;
    for (const auto& d : b.devices) devices += (devices.empty() ? "" : ", ") + d.name;
    const std::string remedy = b.name == "opencl" ? "apt-get install pocl-opencl-icd ocl-icd-libopencl1"
                                                  : "install the NVIDIA driver (525 or newer)";
    findings.push_back({b.name + " device", b.available, b.name == "opencl", b.available ? devices : b.reason,
                        b.available ? "" : remedy});
  }
  const auto rival = [&](const backend::BackendReport& b, const target::DeviceSpec& d,
                         const std::string& name, const std::string& version, const std::string& package) {
    const bool is_there = !version.empty();
    const auto reason = b.without.find(name);
    findings.push_back(
        {fmt::format("{} on {}", name, d.id), is_there, false,
         is_there || reason == b.without.end() ? version : reason->second,
         is_there ? ""
                  : fmt::format("pip install {}, and put its lib folder on LD_LIBRARY_PATH: the tuner "
                                "then has it as a rival",
                                package)});
  };
  for (const auto& b : backends)
    for (const auto& d : b.devices) {
      if (d.api != target::Api::kCuda) continue;
      rival(b, d, "cuBLASLt", d.cublaslt, "nvidia-cublas");
      rival(b, d, "cuDNN", d.cudnn, "nvidia-cudnn-cu13");
    }
  findings.push_back(find_nvrtc());
  for (const auto& b : backends)
    if (b.available && b.name != "null" && !b.devices.empty()) {
      Finding f{fmt::format("race checker for {} (optimize --check-races)", b.name), false, false, "", ""};
      try {
        f.detail = worker::find_race_checker(b.devices[0]);
        f.ok = true;
      } catch (const Error& e) {
        f.detail = "not found";
        f.remedy = e.what();
      }
      findings.push_back(f);
    }
  try {
    std::filesystem::create_directories(settings.cache_folder);
    const std::string probe = settings.cache_folder + "/.doctor";
    write_file_atomic(probe, std::string_view("x"));
    std::filesystem::remove(probe);
    const auto space = std::filesystem::space(settings.cache_folder);
    const bool enough = space.available > (uintmax_t{1} << 30);
    findings.push_back({"cache folder", enough, true,
                        fmt::format("{}, {} free", settings.cache_folder,
                                    report::bytes(static_cast<double>(space.available))),
                        enough ? "" : "thrice cache prune, or choose another with --cache"});
  } catch (const std::exception& e) {
    findings.push_back(
        {"cache folder", false, true, e.what(), "choose another with --cache or THRICE_CACHE"});
  }
  try {
    std::string notice;
    const store::Store store(settings.store_path, &notice);
    findings.push_back({"tuning store", true, true,
                        notice.empty() ? fmt::format("{} trials in {}", store.size(), store.path()) : notice,
                        ""});
  } catch (const std::exception& e) {
    findings.push_back(
        {"tuning store", false, true, e.what(), "choose another with --store or THRICE_STORE"});
  }
  return findings;
}

int run(const Arguments& arguments) {
  const auto findings = examine(settings_from(arguments));
  bool ok = true;
  nlohmann::json j = nlohmann::json::array();
  report::Table table({"", "what", "found", "what to do"});
  for (const Finding& f : findings) {
    ok = ok && (f.ok || !f.is_needed);
    table.add({f.ok ? "ok" : f.is_needed ? "MISSING" : "absent", f.what, f.detail, f.remedy});
    j.push_back({{"what", f.what},
                 {"ok", f.ok},
                 {"needed", f.is_needed},
                 {"detail", f.detail},
                 {"remedy", f.remedy}});
  }
  if (arguments.has("--json"))
    fmt::print("{}\n", nlohmann::json{{"ok", ok}, {"findings", j}}.dump(2));
  else
    fmt::print("{}", table.str({0, 1, 2, 3}, 72));
  return ok ? 0 : 5;
}

}  // namespace

Command doctor_command() {
  return {"doctor",           "say what is missing on this machine and how to mend it",
          "thrice doctor",    {},
          settings_options(), run};
}

}  // namespace thrice::cli
