// Would catch: a price that ignores the record of this very device and shape or takes one of another, and
// estimates that stay rooflines beside measured times.
#include "flow/measured_cost.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "flow/tuning.h"
#include "planned_graph.h"

namespace thrice::flow {
namespace {

TEST(MeasuredCost, RecordsComeBeforeRooflinesAndCorrectThem) {
  const std::string path = testing::TempDir() + "/measured_cost_test/store.sqlite";
  std::filesystem::remove_all(std::filesystem::path(path).parent_path());
  store::Store store(path);
  ir::GraphMaker m;
  const auto x = m.input({64, 64});
  m.output(m.add(ir::Op::relu, {m.add(ir::Op::exp, {x})}));
  m.output(m.add(ir::Op::matmul, {x, x}));
  const auto graph = test::with_origins(std::move(m));
  const plan::PlanResult apart = test::planned(*graph, "original");
  ASSERT_EQ(apart.workloads.size(), 3u);
  const std::string here = store.put_environment("{}");
  const auto priced = [&](const char* environment) {
    MeasuredCost costs(store, environment, target::DeviceSpec{});
    std::map<std::string, plan::RegionCost> by_name;
    std::vector<plan::RegionCost> all;
    for (const auto& [hash, w] : apart.workloads) all.push_back(costs.cost({w.workload, *w.family, w.facts}));
    costs.settle(all);
    size_t i = 0;
    for (const auto& [hash, w] : apart.workloads) by_name[w.uses.at(0)] = all[i++];
    return by_name;
  };
  auto before = priced(here.c_str());
  for (const auto& [hash, w] : apart.workloads) {
    if (w.uses.at(0) != "exp") continue;
    artifact::TuningRecord record;
    record.workload = hash;
    record.shape = shape_key(w);
    record.environment = here;
    record.schedule = w.schedule;
    record.measurement.outcome = artifact::Outcome::kOk;
    record.measurement.time_us = before.at("exp").us * 3;
    record.measurement.spread_us = 0.25;
    record.measurement.error = 1e-7;
    record.measurement.error_limit = 1e-5;
    store.add(record);
  }
  auto after = priced(here.c_str());
  EXPECT_TRUE(after.at("exp").is_measured);
  EXPECT_EQ(after.at("exp").source, "measured record");
  EXPECT_DOUBLE_EQ(after.at("exp").us, before.at("exp").us * 3);
  EXPECT_DOUBLE_EQ(after.at("exp").uncertainty_us, 0.25);
  EXPECT_FALSE(after.at("relu").is_measured);
  EXPECT_NEAR(after.at("relu").us, before.at("relu").us * 3, 1e-9);  // of the same family
  EXPECT_NE(after.at("relu").source.find("x 3.00, as records of map say"), std::string::npos)
      << after.at("relu").source;
  EXPECT_NEAR(after.at("matmul").us, before.at("matmul").us * 3, 1e-9);
  EXPECT_NE(after.at("matmul").source.find("other families"), std::string::npos);
  EXPECT_DOUBLE_EQ(priced("another").at("exp").us, before.at("exp").us);
}

}  // namespace
}  // namespace thrice::flow
