// Exported encoders (and decoders with a padding mask) without their padding. Catches an exporter's spelling
// of a mask that pack_tokens no longer reads, and attention of packed sequences that is planned in parts,
// which would compute rows by rows.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "frontend/import.h"
#include "ir/check.h"
#include "plan/planner.h"
#include "transform/pack_tokens.h"
#include "transform/transform.h"

namespace thrice {
namespace {

class PackedNetwork : public ::testing::TestWithParam<std::pair<const char*, int>> {};

TEST_P(PackedNetwork, HasOneRegionOfAttentionALayer) {
  const auto& [file, layers] = GetParam();
  frontend::ImportOptions import;
  import.random_weights = true;
  ir::Graph graph = frontend::import_model(fmt::format("{}/{}.onnx", THRICE_DATA_DIR, file), import);
  transform::run_transforms(graph, {});
  const transform::Packing packing = transform::pack_tokens(graph);
  ir::verify(graph);
  EXPECT_EQ(packing.mask, "attention_mask");
  for (const char* planner : {"original", "greedy"}) {
    plan::PlanOptions options;
    options.planner = planner;
    options.bindings = {{"batch", 4}, {"sequence", 32}, {packing.rows, 70}};
    const plan::PlanResult result = plan::make_plan(graph, target::DeviceSpec{}, options);
    int attention = 0;
    for (const auto& segment : result.plan.segments)
      for (const auto& step : segment.steps) attention += step.schedule.family == "attention";
    EXPECT_EQ(attention, layers) << planner;
  }
}

INSTANTIATE_TEST_SUITE_P(Exported, PackedNetwork,
                         ::testing::Values(std::pair{"zoo/minilm_l6", 6}, std::pair{"zoo/bert_base", 12},
                                           std::pair{"networks/distilbert", 6},
                                           std::pair{"networks/roberta_base", 12},
                                           std::pair{"networks/electra_small", 4},
                                           std::pair{"networks/llama_small", 4}));

}  // namespace
}  // namespace thrice
