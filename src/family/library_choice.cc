#include "family/library_choice.h"

#include <fmt/format.h>

namespace thrice::family {

namespace {
constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kMostAlgorithm = 7;  // of the library's list
}  // namespace

std::vector<std::pair<std::string, int64_t>> default_library_choice(int64_t workspace_mib) {
  return {{"algorithm", 0}, {"workspace_mib", workspace_mib}};
}

std::vector<artifact::Parameter> library_choice_parameters(int64_t workspace_mib) {
  std::vector<int64_t> algorithms;
  for (int64_t a = 0; a <= kMostAlgorithm; ++a) algorithms.push_back(a);
  return {{"algorithm", algorithms, 0},
          {"workspace_mib", {0, workspace_mib}, 1}};  // the library's best guess first
}

Refusal refuse_library_choice(const Schedule& s) {
  if (s.get("algorithm") < 0 || s.get("algorithm") > kMostAlgorithm)
    return fmt::format("algorithms are 0 to {}", kMostAlgorithm);
  if (s.get("workspace_mib") < 0 || s.get("workspace_mib") > kMiB / 1024)
    return "the workspace is 0 to 1024 MiB";
  return std::nullopt;
}

int64_t library_workspace_bytes(const Schedule& schedule) { return schedule.get("workspace_mib") * kMiB; }

int buffer_position_of(const std::string& name) { return std::stoi(name.substr(1)); }

}  // namespace thrice::family
