// Would catch: critics that do not learn, whose doubt is no doubt, or that are not the same for a seed; a
// policy that proposes what is masked or does not move towards what was better; agent files that come back
// different.
#include <gtest/gtest.h>
#include <thrice/status.h>

#include <cmath>
#include <functional>

#include "tune/agent.h"
#include "tune/critic/features.h"
#include "tune/critic/forest.h"
#include "tune/critic/gaussian.h"
#include "tune/critic/mlp.h"
#include "tune/policy.h"
#include "tune/prior.h"

namespace thrice::tune {
namespace {

// A list of 6 x 6 x 4 without a corner; the best is (2, 3, 1).
Space make_space() {
  std::vector<Point> points;
  for (uint16_t a = 0; a < 6; ++a)
    for (uint16_t b = 0; b < 6; ++b)
      for (uint16_t c = 0; c < 4; ++c)
        if (a + b < 9) points.push_back({0, a, b, c});
  return {
      "f", {"t"}, {{"a", {1, 2, 4, 8, 16, 32}}, {"b", {8, 16, 24, 32, 48, 64}}, {"c", {0, 1, 2, 3}}}, points};
}
double cost_of(const Point& p) {
  return 0.1 * std::pow(p[1] - 2.0, 2) + 0.05 * std::pow(p[2] - 3.0, 2) + 0.2 * std::abs(p[3] - 1.0);
}

TEST(Critic, EachLearnsAndDoubts) {
  const Space space = make_space();
  const Features features(space);
  EXPECT_EQ(features.width(), 3u + 2u);  // b and c have choices that are no powers of two
  using Make = std::function<std::unique_ptr<Critic>()>;
  for (const Make& make :
       {Make([&] { return std::make_unique<GaussianCritic>(features.width(), 1, 100, 6); }),
        Make([&] { return std::make_unique<ForestCritic>(features.width(), 1, 30, 1); }),
        Make([&] { return std::make_unique<MlpCritic>(features.width(), 1, 3, 0.003f, 60); })}) {
    std::vector<float> runs[2];
    for (auto& run : runs) {
      const auto critic = make();
      Rng rng(5);
      Rows x{features.width(), {}}, all = x;
      std::vector<float> y;
      for (int i = 0; i < 50; ++i) {
        const Point p = *space.sample(rng);
        features.write(p, x.add());
        y.push_back(static_cast<float>(cost_of(p)));
      }
      for (int i = 0; i < 12; ++i) critic->fit(x, y);
      for (const Point& p : space.listed()) features.write(p, all.add());
      const Predicted predicted = critic->predict(all);
      double error = 0, spread = 0, mean = 0;
      const auto n = static_cast<double>(space.listed().size());
      for (const Point& p : space.listed()) mean += cost_of(p) / n;
      for (size_t i = 0; i < space.listed().size(); ++i) {
        error += std::pow(predicted.mean[i] - cost_of(space.listed()[i]), 2) / n;
        spread += std::pow(mean - cost_of(space.listed()[i]), 2) / n;
        EXPECT_GE(predicted.sd[i], 0);
      }
      EXPECT_LT(error, 0.35 * spread);
      run = predicted.mean;
    }
    EXPECT_EQ(runs[0], runs[1]);
  }
}

TEST(Mlp, GradientsAreThoseOfTheLoss) {
  // Tiny steps down the gradient lower the loss of the very batch.
  Rng rng(3);
  Mlp net(2, 16, rng);
  Mlp::Matrix x(2, 8);
  Eigen::RowVectorXf y(8);
  for (int i = 0; i < 8; ++i) {
    x(0, i) = static_cast<float>(rng.normal());
    x(1, i) = static_cast<float>(rng.normal());
    y(i) = x(0, i) * x(1, i);
  }
  const float before = net.train(x, y, 0.003f);
  float after = before;
  for (int i = 0; i < 400; ++i) after = net.train(x, y, 0.003f);
  EXPECT_LT(after, 0.1f * before);
}

TEST(Policy, StaysWithinTheMaskAndMovesToWhatPays) {
  const Space space = make_space();
  Policy policy(space, 0.1f);
  Rng rng(1);
  for (int i = 0; i < 200; ++i) {
    const auto p = policy.sample(rng, 0.1, true);
    ASSERT_TRUE(p);
    EXPECT_TRUE(space.legal(*p));
  }
  const Point best{0, 2, 3, 1};
  const double before = policy.log_probability(best);
  for (int round = 0; round < 60; ++round) {
    std::vector<Point> points;
    std::vector<float> advantages;
    for (int i = 0; i < 16; ++i) {
      points.push_back(*policy.sample(rng, 0.05, true));
      advantages.push_back(static_cast<float>(0.8 - cost_of(points.back())));
    }
    policy.update(points, advantages, 2);
  }
  EXPECT_GT(policy.log_probability(best), before + 1);
  Policy other(space, 0.1f);
  other.load(policy.save());
  EXPECT_NEAR(other.log_probability(best), policy.log_probability(best), 1e-3);
  EXPECT_THROW(other.load("1 2 3"), Error);
}

std::vector<Task> make_tasks(const Space& space) {
  std::vector<Task> tasks;
  for (int t = 0; t < 4; ++t) {
    Task task{"g", {{"flops", 20.0 + t}}, {}};
    for (const Point& p : space.listed())
      task.samples.push_back({space.schedule(p), p[3] != 3, cost_of(p) + t});
    tasks.push_back(task);
  }
  return tasks;
}

TEST(Knowledge, AFileComesBackAsItWas) {
  const Space space = make_space();
  GroupNet::TrainOptions options;
  options.steps = 600;
  const Knowledge trained = train_knowledge(make_tasks(space), options);
  const std::string text = trained.str();
  EXPECT_EQ(text, train_knowledge(make_tasks(space), options).str());
  const Knowledge read = Knowledge::parse(text, "file");
  ASSERT_TRUE(read.find("g"));
  EXPECT_FALSE(read.find("other"));
  EXPECT_EQ(read.find("g")->samples(), 4 * space.listed().size());
  const NetPrior a(trained.find("g"), {{"flops", 21}}), b(read.find("g"), {{"flops", 21}});
  const std::vector<float> x = a.expected(space, space.listed()), y = b.expected(space, space.listed());
  for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], y[i], 0.02);
  EXPECT_FALSE(a.examples(space).empty());
  EXPECT_EQ(a.examples(space), b.examples(space));
  EXPECT_THROW(Knowledge::parse("thrice agent\nfeatures 99\n", "file"), Error);
  EXPECT_THROW(Knowledge::parse(text.substr(0, text.size() / 2), "file"), Error);
  EXPECT_THROW(Knowledge::parse("something", "file"), Error);
  EXPECT_NO_THROW(Knowledge::shipped());
}

TEST(Knowledge, WhatWasLearnedIsTriedFirst) {
  const Space space = make_space();
  GroupNet::TrainOptions net;
  net.steps = 3000;
  const Knowledge knowledge = train_knowledge(make_tasks(space), net);
  AgentOptions options;
  options.prior = std::make_shared<NetPrior>(knowledge.find("g"), Context{{"flops", 22}});
  const auto agent = make_agent("actor_critic", space, options);
  double best = 1e9;
  for (int i = 0; i < 6; ++i)
    for (const Point& p : agent->ask(1)) {
      best = std::min(best, cost_of(p));
      agent->tell(p, {p[3] != 3, cost_of(p)});
    }
  EXPECT_LT(best, 0.06) << "at most one step beside the optimum";
}

TEST(Knowledge, TheBestOfTheNearestTaskIsTriedFirst) {
  const Space space = make_space();
  std::vector<Task> tasks = make_tasks(space);
  const std::vector<Point>& points = space.listed();
  for (size_t t = 0; t < tasks.size(); ++t)
    tasks[t].samples[10 * t + 7] = {space.schedule(points[10 * t + 7]), true, -5};
  GroupNet::TrainOptions net;
  net.steps = 5;
  const Knowledge knowledge = train_knowledge(tasks, net);
  AgentOptions options;
  options.prior = std::make_shared<NetPrior>(knowledge.find("g"), Context{{"flops", 22.2}});
  EXPECT_EQ(make_agent("actor_critic", space, options)->ask(1).at(0), points[27]) << "of flops=22";
}

TEST(Knowledge, OfCpusSaysNothingOfGpus) {
  const Space space = make_space();
  std::vector<Task> tasks = make_tasks(space);
  for (Task& task : tasks) task.context["cpu"] = 1;
  GroupNet::TrainOptions options;
  options.steps = 5;
  const auto net = train_knowledge(tasks, options).find("g");
  EXPECT_TRUE(net->covers({{"cpu", 1}}));
  EXPECT_FALSE(net->covers({{"cpu", 0}}));
  tasks[0].samples.resize(5);
  tasks[0].context["cpu"] = 0;
  const auto cpus = train_knowledge(tasks, options).find("g");
  EXPECT_EQ(cpus->tasks(), tasks.size() - 1) << "five samples of a GPU are left out";
  EXPECT_FALSE(cpus->covers({{"cpu", 0}}));
  EXPECT_TRUE(train_knowledge({tasks[0]}, options).nets.empty()) << "too few samples";
}

TEST(State, AnAgentGoesOnWhereItWas) {
  const Space space = make_space();
  for (const char* name : {"actor_critic", "value", "ppo"}) {
    const auto first = make_agent(name, space, {});
    std::vector<Point> told;
    for (int i = 0; i < 20; ++i)
      for (const Point& p : first->ask(1)) {
        first->tell(p, {p[3] != 3, cost_of(p)});
        told.push_back(p);
      }
    std::string state;
    first->save(state);
    const auto second = make_agent(name, space, {});
    second->load(state);
    for (const Point& p : second->ask(30)) EXPECT_EQ(std::count(told.begin(), told.end(), p), 0) << name;
    EXPECT_THROW(make_agent(name, space, {})->load("random 0\n"), Error);
  }
}

}  // namespace
}  // namespace thrice::tune
