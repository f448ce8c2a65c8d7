// The recorded cases (each once broke an engine of this kind) and the small nets of the zoo, training steps
// among them, on the float64 interpreter, as imported and after all transforms. Catches wrong decompositions,
// wrong rewrites, and files that should be refused but are not.
#include <thrice/status.h>

#include "cross/cases/recorded.h"
#include "frontend/import.h"
#include "ir/check.h"
#include "ir/evaluate.h"
#include "transform/transform.h"

namespace thrice::testing {
namespace {

class Cases : public ::testing::TestWithParam<fs::path> {};

void run_sets(const ir::Graph& graph, const RecordedCase& recorded) {
  for (const fs::path& set : recorded.sets) {
    std::vector<ir::ArrayPtr> arrays;
    for (const ir::Tensor& t : recorded.inputs(graph, set)) arrays.push_back(ir::to_array(t));
    std::vector<ir::Tensor> results;
    for (const ir::ArrayPtr& result : ir::evaluate_graph(graph, arrays))
      results.push_back(ir::to_tensor(*result));
    recorded.expect_recorded(graph, set, results);
  }
}

TEST_P(Cases, AsImportedAndTransformed) {
  const RecordedCase recorded(GetParam());
  ir::Graph graph;
  try {
    graph = frontend::import_model(GetParam() / "model.onnx");
  } catch (const Error& error) {
    EXPECT_NE(recorded.expected(), "result") << error.what();
    EXPECT_NE(error.code(), Code::kInternal) << error.what();
    return;
  }
  ASSERT_NE(recorded.expected(), "error");
  ir::verify(graph);
  run_sets(graph, recorded);
  transform::run_transforms(graph);
  ir::verify(graph);
  run_sets(graph, recorded);
}

INSTANTIATE_TEST_SUITE_P(Recorded, Cases, ::testing::ValuesIn(all_case_folders()), case_name);

TEST(CaseFolders, AreThere) {
  EXPECT_GE(case_folders("cases").size(), 37u);
  EXPECT_GE(case_folders("zoo").size(), 5u);
  EXPECT_GE(case_folders("networks").size(), 3u);
}

}  // namespace
}  // namespace thrice::testing
