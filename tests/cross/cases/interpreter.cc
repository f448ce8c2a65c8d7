// The recorded cases (each once broke an engine of this kind) on the float64 interpreter, as imported and
// after all transforms. Catches wrong decompositions, wrong rewrites, and files that should be refused but
// are not.
#include <gtest/gtest.h>
#include <thrice/status.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "frontend/import.h"
#include "frontend/npy.h"
#include "ir/check.h"
#include "ir/evaluate.h"
#include "transform/transform.h"

namespace thrice {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> case_folders() {
  std::vector<fs::path> folders;
  const fs::path root = fs::path(THRICE_DATA_DIR) / "cases";
  if (!fs::exists(root)) return folders;
  for (const auto& entry : fs::directory_iterator(root)) {
    if (fs::exists(entry.path() / "case.json")) folders.push_back(entry.path());
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

std::string difference(const ir::Tensor& got, const ir::Tensor& want, double rtol, double atol) {
  if (got.dtype() != want.dtype()) return "dtype";
  if (got.shape() != want.shape()) return "shape";
  for (int64_t i = 0; i < want.size(); ++i) {
    if (!is_float(want.dtype())) {
      if (got.as_int(i) != want.as_int(i)) return "element " + std::to_string(i);
      continue;
    }
    const double y = got.as_double(i), r = want.as_double(i);
    const bool special = !std::isfinite(r);
    const bool same = std::isnan(r) ? std::isnan(y)
                      : special     ? y == r
                                    : std::abs(y - r) <= atol + rtol * std::abs(r);
    if (!same) return "element " + std::to_string(i) + ": " + std::to_string(y) + " for " + std::to_string(r);
  }
  return "";
}

class Cases : public ::testing::TestWithParam<fs::path> {};

void run_sets(const ir::Graph& graph, const fs::path& folder, const nlohmann::json& info) {
  const int sets = info["sets"].get<int>();
  for (int round = 0; round <= sets; ++round) {
    const int set = round % sets;  // the first set again at the end
    const fs::path data = set == 0 ? folder : folder / ("alt" + std::to_string(set));
    std::vector<ir::ArrayPtr> inputs;
    const auto feeds = info["feeds"].get<std::vector<std::string>>();
    for (const auto& name : graph.input_names) {
      const auto at = std::find(feeds.begin(), feeds.end(), name) - feeds.begin();
      inputs.push_back(ir::to_array(frontend::read_npy(data / ("in_" + std::to_string(at) + ".npy"))));
    }
    const auto results = ir::evaluate_graph(graph, inputs);
    const auto names = info["outputs"].get<std::vector<std::string>>();
    for (size_t i = 0; i < names.size(); ++i) {
      const auto at = std::find(graph.output_names.begin(), graph.output_names.end(), names[i]) -
                      graph.output_names.begin();
      ASSERT_LT(static_cast<size_t>(at), results.size()) << names[i];
      const ir::Tensor want = frontend::read_npy(data / ("out_" + std::to_string(i) + ".npy"));
      EXPECT_EQ(difference(ir::to_tensor(*results[static_cast<size_t>(at)]), want, info["rtol"].get<double>(),
                           info["atol"].get<double>()),
                "")
          << "output " << names[i] << ", set " << set;
    }
  }
}

TEST_P(Cases, AsImportedAndTransformed) {
  nlohmann::json info;
  std::ifstream(GetParam() / "case.json") >> info;
  const std::string expected = info["expect"];
  ir::Graph graph;
  try {
    graph = frontend::import_model(GetParam() / "model.onnx");
  } catch (const Error& error) {
    EXPECT_NE(expected, "result") << error.what();
    EXPECT_NE(error.code(), Code::kInternal) << error.what();
    return;
  }
  ASSERT_NE(expected, "error");
  ir::verify(graph);
  run_sets(graph, GetParam(), info);
  transform::run_transforms(graph);
  ir::verify(graph);
  run_sets(graph, GetParam(), info);
}

INSTANTIATE_TEST_SUITE_P(Recorded, Cases, ::testing::ValuesIn(case_folders()), [](const auto& info) {
  std::string name = info.param.filename().string();
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
});

TEST(CaseFolders, AreThere) { EXPECT_GE(case_folders().size(), 37u); }

}  // namespace
}  // namespace thrice
