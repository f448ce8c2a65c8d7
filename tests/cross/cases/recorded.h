// The recorded cases, the small nets of the zoo and the training steps (tests/data/README.md): where they
// lie, their inputs, and how an answer is compared with the recorded one.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "frontend/npy.h"
#include "ir/graph.h"

namespace thrice::testing {

namespace fs = std::filesystem;

inline std::vector<fs::path> case_folders(const char* archive) {
  std::vector<fs::path> folders;
  const fs::path root = fs::path(THRICE_DATA_DIR) / archive;
  if (!fs::exists(root)) return folders;
  for (const auto& entry : fs::directory_iterator(root)) {
    if (fs::exists(entry.path() / "case.json")) folders.push_back(entry.path());
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

// Of all three archives, as parameters of a test.
inline std::vector<fs::path> all_case_folders() {
  std::vector<fs::path> folders = case_folders("cases");
  for (const char* archive : {"zoo", "networks"})
    for (const fs::path& folder : case_folders(archive)) folders.push_back(folder);
  return folders;
}

inline std::string case_name(const ::testing::TestParamInfo<fs::path>& info) {
  std::string name = info.param.filename().string();
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
}

struct RecordedCase {
  explicit RecordedCase(fs::path where) : folder(std::move(where)) {
    std::ifstream(folder / "case.json") >> info;
    for (int i = 0; i < info["sets"].get<int>(); ++i)
      sets.push_back(i == 0 ? folder : folder / ("alt" + std::to_string(i)));
    sets.push_back(folder);  // the first set again at the end: another shape before must not matter
  }
  std::string expected() const { return info["expect"]; }

  std::vector<ir::Tensor> inputs(const ir::Graph& graph, const fs::path& set) const {
    std::vector<ir::Tensor> tensors;
    const auto feeds = info["feeds"].get<std::vector<std::string>>();
    for (const auto& name : graph.input_names) {
      const auto at = std::find(feeds.begin(), feeds.end(), name) - feeds.begin();
      tensors.push_back(frontend::read_npy(set / ("in_" + std::to_string(at) + ".npy")));
    }
    return tensors;
  }

  // Results in the order of graph.outputs against the recorded ones, by the case's own tolerance.
  void expect_recorded(const ir::Graph& graph, const fs::path& set,
                       const std::vector<ir::Tensor>& results) const {
    const auto names = info["outputs"].get<std::vector<std::string>>();
    for (size_t i = 0; i < names.size(); ++i) {
      const auto at = std::find(graph.output_names.begin(), graph.output_names.end(), names[i]) -
                      graph.output_names.begin();
      ASSERT_LT(static_cast<size_t>(at), results.size()) << names[i];
      EXPECT_EQ(difference(results[static_cast<size_t>(at)],
                           frontend::read_npy(set / ("out_" + std::to_string(i) + ".npy"))),
                "")
          << "output " << names[i] << ", inputs of " << set.filename();
    }
  }

  fs::path folder;
  std::vector<fs::path> sets;  // folders of input sets, in the order they are run
  nlohmann::json info;

 private:
  std::string difference(const ir::Tensor& got, const ir::Tensor& want) const {
    if (got.dtype() != want.dtype()) return "dtype";
    if (got.shape() != want.shape()) return "shape";
    const double rtol = info["rtol"], atol = info["atol"];
    for (int64_t i = 0; i < want.size(); ++i) {
      if (!is_float(want.dtype())) {
        if (got.as_int(i) != want.as_int(i)) return "element " + std::to_string(i);
        continue;
      }
      const double y = got.as_double(i), r = want.as_double(i);
      const bool same = std::isnan(r)       ? std::isnan(y)
                        : !std::isfinite(r) ? y == r
                                            : std::abs(y - r) <= atol + rtol * std::abs(r);
      if (!same)
        return "element " + std::to_string(i) + ": " + std::to_string(y) + " for " + std::to_string(r);
    }
    return "";
  }
};

}  // namespace thrice::testing
