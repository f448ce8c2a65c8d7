#include "tune/prior.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <set>

namespace thrice::tune {
namespace {

float logarithm(int64_t value) {
  return static_cast<float>(std::copysign(std::log2(1.0 + std::abs(static_cast<double>(value))), value));
}

std::vector<artifact::Schedule> best_schedules(const Task& task) {
  std::vector<const Sample*> good;
  for (const Sample& s : task.samples)
    if (s.ok) good.push_back(&s);
  std::stable_sort(good.begin(), good.end(),
                   [](const Sample* a, const Sample* b) { return a->cost < b->cost; });
  std::vector<artifact::Schedule> best;
  for (const Sample* s : good)
    if (best.size() < kExamples && std::find(best.begin(), best.end(), s->schedule) == best.end())
      best.push_back(s->schedule);
  return best;
}

// Facts that one of them lacks do not count.
double context_distance(const Context& a, const Context& b) {
  double sum = 0;
  for (const auto& [name, value] : a)
    if (const auto it = b.find(name); it != b.end()) sum += std::abs(value - it->second);
  return sum;
}

}  // namespace

float squeezed_cost(double cost, double best) { return static_cast<float>(std::tanh(cost - best)); }

void GroupNet::write(const artifact::Schedule& schedule, const Context& context, float* column) const {
  const std::string label = schedule.family + "/" + schedule.tactic;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const std::string name = inputs_[i].substr(2);
    float value = 0;
    switch (inputs_[i][0]) {
      case 'p':
        for (const auto& [parameter, choice] : schedule.values)
          if (parameter == name) value = logarithm(choice);
        break;
      case 'd':
        for (const auto& [parameter, choice] : schedule.values)
          if (parameter == name && choice != 0)
            value = static_cast<float>(std::countr_zero(static_cast<uint64_t>(std::abs(choice))));
        break;
      case 't':
        value = name == label ? 1.0f : 0.0f;
        break;
      default:
        if (const auto it = context.find(name); it != context.end()) value = static_cast<float>(it->second);
    }
    column[i] = (value - mean_[i]) * scale_[i];
  }
}

GroupNet GroupNet::train(const std::vector<const Task*>& tasks, const TrainOptions& options) {
  GroupNet net;
  net.group_ = tasks.front()->group;
  std::set<std::string> parameters, labels, facts;
  for (const Task* task : tasks) {
    for (const auto& [name, value] : task->context) facts.insert("c:" + name);
    for (const Sample& s : task->samples) {
      labels.insert("t:" + s.schedule.family + "/" + s.schedule.tactic);
      for (const auto& [name, value] : s.schedule.values) {
        parameters.insert("p:" + name);
        if (value > 0 && !std::has_single_bit(static_cast<uint64_t>(value))) parameters.insert("d:" + name);
      }
    }
  }
  net.inputs_.assign(parameters.begin(), parameters.end());
  // Recorded spaces are named after their device: one tactic a task says nothing.
  const bool has_tactics = tasks.front()->samples.front().schedule.tactic != "recorded" && labels.size() > 1;
  if (has_tactics) net.inputs_.insert(net.inputs_.end(), labels.begin(), labels.end());
  if (tasks.size() > 3) net.inputs_.insert(net.inputs_.end(), facts.begin(), facts.end());
  net.tasks_ = tasks.size();

  const auto width = static_cast<Eigen::Index>(net.inputs_.size());
  for (const Task* task : tasks) net.samples_ += task->samples.size();
  Mlp::Matrix x(width, static_cast<Eigen::Index>(net.samples_));
  Eigen::RowVectorXf y(static_cast<Eigen::Index>(net.samples_));
  net.mean_.assign(net.inputs_.size(), 0);
  net.scale_.assign(net.inputs_.size(), 1);
  Eigen::Index at = 0;
  std::vector<std::pair<Eigen::Index, Eigen::Index>> ranges;
  for (const Task* task : tasks) {
    double best = 1e300;
    for (const Sample& s : task->samples)
      if (s.ok) best = std::min(best, s.cost);
    const Eigen::Index begin = at;
    for (const Sample& s : task->samples) {
      net.write(s.schedule, task->context, x.col(at).data());
      y(at++) = s.ok ? squeezed_cost(s.cost, best) : 1.0f;
    }
    ranges.emplace_back(begin, at);
    net.examples_.push_back({task->context, best_schedules(*task)});
    if (net.examples_.back().best.empty()) net.examples_.pop_back();
  }
  for (Eigen::Index i = 0; i < width; ++i) {
    const float mean = x.row(i).mean();
    const float sd = std::sqrt((x.row(i).array() - mean).square().mean());
    net.mean_[static_cast<size_t>(i)] = mean;
    net.scale_[static_cast<size_t>(i)] = sd > 1e-6f ? 1 / sd : 0.0f;
    x.row(i) = (x.row(i).array() - mean) * net.scale_[static_cast<size_t>(i)];
  }
  Rng rng(options.seed);
  constexpr Eigen::Index kBatch = 64;
  Mlp::Matrix batch(width, kBatch);
  Eigen::RowVectorXf target(kBatch);
  for (int m = 0; m < options.members; ++m) {
    Mlp member(net.inputs_.size(), 64, rng);
    for (int step = 0; step < options.steps; ++step) {
      for (Eigen::Index i = 0; i < kBatch; ++i) {  // every task counts alike, however long
        const auto& [begin, end] = ranges[rng.below(ranges.size())];
        const auto from = begin + static_cast<Eigen::Index>(rng.below(static_cast<size_t>(end - begin)));
        batch.col(i) = x.col(from);
        target(i) = y(from);
      }
      const float left = 1 - static_cast<float>(step) / static_cast<float>(options.steps);
      member.train(batch, target, options.learning_rate * (0.02f + 0.98f * left));
    }
    net.members_.push_back(std::move(member));
  }
  return net;
}

std::vector<float> GroupNet::expected(const std::vector<artifact::Schedule>& schedules,
                                      const Context& context) const {
  std::vector<float> result(schedules.size(), 0);
  constexpr size_t kBlock = 512;
  for (size_t begin = 0; begin < schedules.size(); begin += kBlock) {
    const size_t count = std::min(kBlock, schedules.size() - begin);
    Mlp::Matrix x(static_cast<Eigen::Index>(inputs_.size()), static_cast<Eigen::Index>(count));
    for (size_t i = 0; i < count; ++i)
      write(schedules[begin + i], context, x.col(static_cast<Eigen::Index>(i)).data());
    for (const Mlp& member : members_) {
      const Eigen::RowVectorXf out = member.forward(x);
      for (size_t i = 0; i < count; ++i)
        result[begin + i] += out(static_cast<Eigen::Index>(i)) / static_cast<float>(members_.size());
    }
  }
  return result;
}

std::vector<artifact::Schedule> GroupNet::examples(const Context& context) const {
  std::vector<std::pair<double, size_t>> order;
  for (size_t i = 0; i < examples_.size(); ++i)
    order.emplace_back(context_distance(context, examples_[i].context), i);
  std::sort(order.begin(), order.end());
  std::vector<artifact::Schedule> result;
  for (size_t rank = 0; rank < kExamples; ++rank)
    for (const auto& [far, i] : order)
      if (rank < examples_[i].best.size()) result.push_back(examples_[i].best[rank]);
  return result;
}

bool GroupNet::covers(const Context& context) const {
  const auto cpu = context.find("cpu");
  if (cpu == context.end()) return true;
  bool told = false;
  for (const Example& example : examples_)
    if (const auto it = example.context.find("cpu"); it != example.context.end()) {
      told = true;
      if (std::abs(it->second - cpu->second) < 0.01) return true;
    }
  return !told;
}

std::vector<float> NetPrior::expected(const Space& space, const std::vector<Point>& points) const {
  std::vector<artifact::Schedule> schedules;
  schedules.reserve(points.size());
  for (const Point& point : points) schedules.push_back(space.schedule(point));
  return net_->expected(schedules, context_);
}

std::vector<Point> NetPrior::examples(const Space& space) const {
  std::vector<Point> result;
  for (artifact::Schedule& schedule : net_->examples(context_)) {
    if (schedule.tactic == "recorded")  // recorded spaces are named after their device
      schedule.family = space.label(0).substr(0, space.label(0).find('/'));
    const auto point = space.point(schedule);
    if (point && space.legal(*point) && std::find(result.begin(), result.end(), *point) == result.end())
      result.push_back(*point);
  }
  return result;
}

Knowledge train_knowledge(const std::vector<Task>& tasks, const GroupNet::TrainOptions& options) {
  std::map<std::string, std::vector<const Task*>> groups;
  for (const Task& task : tasks) {
    const bool any =
        std::any_of(task.samples.begin(), task.samples.end(), [](const Sample& s) { return s.ok; });
    if (any && task.samples.size() > 1) groups[task.group].push_back(&task);
  }
  Knowledge knowledge;
  const auto is_cpu = [](const Task& task) {
    const auto it = task.context.find("cpu");
    return it != task.context.end() && it->second > 0;
  };
  for (auto& [group, of] : groups) {
    std::map<bool, size_t> samples;
    for (const Task* task : of) samples[is_cpu(*task)] += task->samples.size();
    std::erase_if(of, [&](const Task* task) { return samples[is_cpu(*task)] < kFewest; });
    if (of.empty()) continue;
    knowledge.nets.push_back(std::make_shared<GroupNet>(GroupNet::train(of, options)));
  }
  return knowledge;
}

std::shared_ptr<const GroupNet> Knowledge::find(const std::string& group) const {
  for (const auto& net : nets)
    if (net->group() == group) return net;
  return nullptr;
}

}  // namespace thrice::tune
