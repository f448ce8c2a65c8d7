// Would catch: samples that come back different, an evaluation that leaves agents or spaces out or takes
// nonsense, rewards that ignore memory or let something slower than the default win.
#include <gtest/gtest.h>
#include <thrice/status.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "flow/agent_eval.h"
#include "flow/agent_train.h"
#include "flow/reward.h"

namespace thrice::flow {
namespace {

// 8 x 6, a bowl; the corner fails. `shift` moves the bottom.
std::string space_file(const std::string& name, int shift) {
  const std::string path = testing::TempDir() + "/" + name + ".csv";
  std::ofstream file(path);
  file << "tile,vector,time\n";
  for (int a = 0; a < 8; ++a)
    for (int b = 0; b < 6; ++b) {
      file << (1 << a) << "," << b << ",";
      if (a == 7 && b == 5)
        file << "nan\n";
      else
        file << 1 + 0.1 * std::pow(a - 3 - shift, 2) + 0.05 * std::pow(b - 2, 2) << "\n";
    }
  return path;
}

TEST(AgentEval, EveryAgentOnASpace) {
  EvalRequest request;
  request.spaces = space_file("bowl_one", 0);
  request.repeats = 3;
  request.trials = 60;
  int64_t told = 0;
  request.listener.progress = [&](const Progress& p) {
    told = p.done;
    EXPECT_EQ(p.total, 7 * 3);
    EXPECT_GE(p.seconds_left, 0);
  };
  const EvalReport report = evaluate_agents(request);
  EXPECT_EQ(told, 7 * 3);
  ASSERT_EQ(report.results.size(), 7u);
  for (const AgentOnSpace& r : report.results) {
    EXPECT_EQ(r.reached, 1) << r.agent << ": 48 configurations, 60 trials";
    EXPECT_DOUBLE_EQ(r.curve.back().value, 1) << r.agent;
  }
  EXPECT_EQ(report.spaces[0].failing, 1);
  EXPECT_EQ(report.spaces[0].importance[0].first, "tile");
  const nlohmann::json j = nlohmann::json::parse(report.to_json());
  EXPECT_EQ(j["totals"].size(), 7u);
  request.jobs = 2;
  request.listener = {};
  const EvalReport again = evaluate_agents(request);
  for (size_t i = 0; i < again.results.size(); ++i)
    EXPECT_EQ(again.results[i].score.value, report.results[i].score.value) << "whatever the threads";
}

TEST(AgentEval, NonsenseIsRefused) {
  EvalRequest request;
  request.spaces = space_file("bowl_two", 0);
  for (const char* agent : {"oracle", "actor_critic:no_luck", "genetic:population=x"}) {
    request.agents = {agent};
    EXPECT_THROW(evaluate_agents(request), Error) << agent;
  }
  request.agents = {"random"};
  request.repeats = 0;
  EXPECT_THROW(evaluate_agents(request), Error);
}

TEST(AgentEval, TransferLeavesTheSpaceItselfOut) {
  std::vector<tune::RecordedSpace> spaces;
  spaces.push_back(tune::read_space(space_file("bowl_three", 0)));
  EXPECT_FALSE(prior_without(spaces, spaces[0])) << "there is no other";
  EvalRequest request;
  request.spaces = space_file("bowl_four", 0);
  request.agents = {"actor_critic:transfer"};
  request.repeats = 1;
  EXPECT_EQ(evaluate_agents(request).totals.at(0).spaces, 0);
}

TEST(AgentTrain, SamplesComeBackAsTheyWere) {
  std::vector<tune::Task> tasks{task_of(tune::read_space(space_file("bowl_five", 0)))};
  tasks[0].context = {{"flops", 20.5}, {"bytes", 12.25}};
  const std::string text = tasks_text(tasks);
  const std::vector<tune::Task> read = parse_tasks(text, "samples");
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0].group, tasks[0].group);
  EXPECT_EQ(read[0].context, tasks[0].context);
  ASSERT_EQ(read[0].samples.size(), tasks[0].samples.size());
  for (size_t i = 0; i < read[0].samples.size(); ++i) {
    EXPECT_EQ(read[0].samples[i].ok, tasks[0].samples[i].ok);
    EXPECT_NEAR(read[0].samples[i].cost, tasks[0].samples[i].cost, 1e-5);
    EXPECT_EQ(read[0].samples[i].schedule, tasks[0].samples[i].schedule);
  }
  EXPECT_THROW(parse_tasks("thrice samples\nfeatures 99\n", "x"), Error);
  EXPECT_THROW(parse_tasks("thrice samples\nfeatures 1\n1.0 a/b c=1\n", "x"), Error);
  EXPECT_THROW(read_tasks(testing::TempDir() + "/nowhere"), Error);
}

TEST(AgentTrain, TheShippedAgentIsReadable) {
  EXPECT_NO_THROW(knowledge_of(Settings()));
  Settings other;
  other.agent_file = testing::TempDir() + "/none.txt";
  EXPECT_THROW(knowledge_of(other), Error);
}

TEST(Reward, WeightsAreSharesOfTheirSum) {
  artifact::Measurement fast, slim;
  fast.time_us = 100;
  fast.temporary_bytes = 3000;
  slim.time_us = 105;
  slim.temporary_bytes = 0;
  const Reward by_default({0.6, 0.3, 0.1}, 1000), doubled({1.2, 0.6, 0.2}, 1000), time_only({1, 0, 0}, 1000);
  EXPECT_NEAR(by_default.cost(fast), doubled.cost(fast), 1e-12);
  EXPECT_LT(time_only.cost(fast), time_only.cost(slim));
  // A quarter of the memory is worth 0.1 ln 4 = 14%; the time costs 0.9 ln 1.05 = 4%.
  EXPECT_LT(by_default.cost(slim), by_default.cost(fast));
  EXPECT_EQ(Reward({0, 0, 0}, 1).time_weight(), 1) << "no weights: latency";
}

TEST(Reward, ThroughputIsWhatWasMeasuredBesideOthers) {
  artifact::Measurement by_default, overlaps, quick, unmeasured;
  by_default.time_us = overlaps.time_us = unmeasured.time_us = 100;
  by_default.concurrent_us = 80;
  overlaps.concurrent_us = 40;
  quick.time_us = 95;
  quick.concurrent_us = 95;
  const Reward latency({1, 0, 0}, 1000, by_default), throughput({0, 1, 0}, 1000, by_default),
      usual({0.6, 0.3, 0.1}, 1000, by_default);
  EXPECT_LT(latency.cost(quick), latency.cost(overlaps));
  EXPECT_LT(throughput.cost(overlaps), throughput.cost(quick));
  EXPECT_NEAR(throughput.cost(by_default) - throughput.cost(overlaps), std::log(2), 1e-12);
  EXPECT_NEAR(usual.cost(by_default) - usual.cost(overlaps), 0.3 * std::log(2), 1e-12);
  EXPECT_EQ(throughput.cost(unmeasured), throughput.cost(by_default))
      << "taken to gain what the default gains";
  EXPECT_NEAR(throughput.cost(overlaps, 200) - throughput.cost(overlaps), std::log(2), 1e-12);
}

}  // namespace
}  // namespace thrice::flow
