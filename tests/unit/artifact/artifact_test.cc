// Catches: a schedule, plan or outcome that does not come back from its text, and damaged texts that pass.
#include <gtest/gtest.h>
#include <thrice/status.h>

#include <functional>

#include "artifact/kernel.h"
#include "artifact/library_convolution.h"
#include "artifact/library_product.h"
#include "artifact/measurement.h"
#include "artifact/plan.h"
#include "base/rng.h"

namespace thrice::artifact {
namespace {

void expect_corrupt(const std::function<void()>& act) {
  try {
    act();
    ADD_FAILURE() << "damaged text passed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kCorrupt) << error.what();
  }
}

TEST(Schedule, RoundTrip) {
  Schedule s{"matmul", "tiled", {{"tile_m", 64}, {"tile_n", -1}}};
  EXPECT_EQ(s.str(), "matmul/tiled tile_m=64 tile_n=-1");
  EXPECT_EQ(Schedule::parse(s.str()), s);
  const Schedule bare{"map", "rows", {}};
  EXPECT_EQ(Schedule::parse(bare.str()), bare);
  s.set("tile_m", 32);
  s.set("stages", 3);
  EXPECT_EQ(s.get("tile_m"), 32);
  EXPECT_EQ(s.get("stages"), 3);
  EXPECT_EQ(s.get("absent", 5), 5);
  EXPECT_THROW(s.get("absent"), Error);
  for (const char* text :
       {"", "matmul", "/tiled", "matmul/", "matmul/tiled tile", "matmul/tiled tile=", "matmul/tiled tile=1x",
        "matmul/tiled  a=1", "matmul/tiled a=1 ", "matmul/tiled a=1 a=2", "matmul/tiled =1",
        "matmul/tiled a=99999999999999999999", "mat mul/tiled"})
    expect_corrupt([&] { Schedule::parse(text); });
}

TEST(Schedule, SpaceSize) {
  const Parameter four{"a", {1, 2, 3, 4}}, two{"b", {1, 2}};
  EXPECT_EQ((ScheduleSpace{{{"f", "t", {four, two}}, {"f", "u", {two}}, {"f", "v", {}}}}).size(), 11);
  const Parameter wide{"w", std::vector<int64_t>(1000)};
  EXPECT_EQ((ScheduleSpace{{{"f", "t", std::vector<Parameter>(8, wide)}}}).size(), INT64_MAX);
}

Plan sample() {
  Plan plan;
  plan.graph_hash = "abc";
  plan.planner = "greedy";
  PlanStep region{StepKind::kRegion, {0, 2}, "123", {"map", "flat", {{"block", 256}}}, false};
  PlanStep alias{StepKind::kAlias, {3}, "", {}, false};
  PlanStep host{StepKind::kHost, {4}, "", {}, true};
  PlanStep control{StepKind::kControl, {5}, "", {}, false};
  plan.segments = {{{region, alias}}, {{host, control}}};
  Plan inner;
  inner.graph_hash = "def";
  inner.planner = "greedy";
  plan.bodies.push_back({5, 0, {inner}});
  return plan;
}

TEST(Plan, RoundTrip) {
  const Plan plan = sample();
  const Plan back = Plan::from_json(plan.to_json());
  EXPECT_EQ(back.to_json(), plan.to_json());
  EXPECT_EQ(back.digest(), plan.digest());
  ASSERT_EQ(back.segments.size(), 2u);
  EXPECT_EQ(back.segments[0].steps[0].schedule.get("block"), 256);
  EXPECT_TRUE(back.segments[1].steps[0].slow);
  EXPECT_EQ(back.bodies[0].plan[0].graph_hash, "def");
  Plan other = plan;
  other.segments[0].steps[0].schedule.set("block", 128);
  EXPECT_NE(other.digest(), plan.digest());
}

TEST(Plan, BucketsRoundTripAndAscend) {
  Plan plan = sample();
  plan.bucket_symbol = "length";
  const Schedule small{"map", "flat", {{"block", 64}}}, middle{"map", "flat", {{"block", 128}}};
  plan.segments[0].steps[0].buckets = {{32, small}, {100, middle}};
  const Plan back = Plan::from_json(plan.to_json());
  EXPECT_EQ(back.to_json(), plan.to_json());
  EXPECT_EQ(back.bucket_symbol, "length");
  ASSERT_EQ(back.segments[0].steps[0].buckets.size(), 2u);
  EXPECT_EQ(back.segments[0].steps[0].buckets[1].up_to, 100);
  EXPECT_EQ(back.segments[0].steps[0].buckets[1].schedule, middle);
  EXPECT_NE(plan.digest(), sample().digest());
  plan.segments[0].steps[0].buckets[1].up_to = 32;
  expect_corrupt([&] { Plan::from_json(plan.to_json()); });
}

TEST(Plan, DamagedTexts) {
  const std::string good = sample().to_json();
  expect_corrupt([] { Plan::from_json(""); });
  expect_corrupt([] { Plan::from_json("[]"); });
  expect_corrupt([] { Plan::from_json(std::string(100000, '[')); });
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    expect_corrupt([&] { Plan::from_json(text); });
  };
  with("\"version\": 1", "\"version\": 2");
  with("\"region\"", "\"ring\"");
  with("map/flat", "map");
  with("\"node\": 5", "\"node\": -5");
  with("\"node\": 5", "\"node\": 4294967301");
  with("\"node\": 5", "\"node\": 5.5");
  Rng rng(5);
  int refused = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    std::string text = good;
    text[rng.below(text.size())] = static_cast<char>(' ' + static_cast<char>(rng.below(95)));
    try {
      Plan::from_json(text).to_json();
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), Code::kCorrupt) << error.what();
      ++refused;
    }
  }
  EXPECT_GT(refused, 500);
}

TEST(LibraryProduct, SymbolsComeBackAndDamagedOnesDoNotPass) {
  const LibraryProduct p{DType::kBF16, DType::kF32, false, true, 1, 0, 12, 3};
  EXPECT_EQ(p.symbol(), "cublaslt:bf16:f32:nt:1:0:12:3");
  EXPECT_EQ(LibraryProduct::parse(p.symbol()), p);
  EXPECT_EQ(LibraryProduct::parse("matmul_tiled"), std::nullopt);
  EXPECT_EQ(LibraryProduct::parse("cudnn:f32:2:0:1:2:3"), std::nullopt);
  EXPECT_TRUE(p.uses(12));
  EXPECT_FALSE(p.uses(2));
  for (const char* text :
       {"cublaslt:", "cublaslt:f32:f32:nn:0:1:2", "cublaslt:f32:f32:nn:0:1:2:3:4",
        "cublaslt:i32:i32:nn:0:1:2:3", "cublaslt:f32:f16:nn:0:1:2:3", "cublaslt:f99:f32:nn:0:1:2:3",
        "cublaslt:f32:f32:nx:0:1:2:3", "cublaslt:f32:f32:n:0:1:2:3", "cublaslt:f32:f32:nn:-1:1:2:3",
        "cublaslt:f32:f32:nn::1:2:3", "cublaslt:f32:f32:nn:0:1:2:99999"})
    expect_corrupt([&] { LibraryProduct::parse(text); });
}

TEST(LibraryConvolution, SymbolsComeBackAndDamagedOnesDoNotPass) {
  const LibraryConvolution c{3, 1, 0, 12, 4};
  EXPECT_EQ(c.symbol(), "cudnn:f32:3:1:0:12:4");
  EXPECT_EQ(LibraryConvolution::parse(c.symbol()), c);
  EXPECT_EQ(LibraryConvolution::parse("conv_naive"), std::nullopt);
  EXPECT_EQ(LibraryConvolution::parse("cublaslt:f32:f32:nn:0:1:2:3"), std::nullopt);
  EXPECT_TRUE(c.uses(12));
  EXPECT_FALSE(c.uses(2));
  for (const char* text :
       {"cudnn:", "cudnn:f32:2:0:1:2", "cudnn:f32:2:0:1:2:3:4", "cudnn:f16:2:0:1:2:3", "cudnn:f32:0:0:1:2:3",
        "cudnn:f32:4:0:1:2:3", "cudnn:f32:2:0:1:2:-3", "cudnn:f32:2::1:2:3"})
    expect_corrupt([&] { LibraryConvolution::parse(text); });
}

TEST(Measurement, OutcomeNames) {
  for (Outcome o : {Outcome::kOk, Outcome::kIllegal, Outcome::kCompileFailed, Outcome::kLaunchFailed,
                    Outcome::kTimedOut, Outcome::kWrong})
    EXPECT_EQ(parse_outcome(outcome_name(o)), o);
  expect_corrupt([] { parse_outcome("fine"); });
  EXPECT_STREQ(language_name(Language::kCuda), "cuda");
}

}  // namespace
}  // namespace thrice::artifact
