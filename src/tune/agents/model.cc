#include "tune/agents/model.h"

#include <algorithm>
#include <cmath>

#include "tune/critic/forest.h"
#include "tune/critic/gaussian.h"
#include "tune/critic/mlp.h"
#include "tune/prior.h"

namespace thrice::tune {
namespace {

std::unique_ptr<Critic> make_critic(int kind, size_t width, const AgentOptions& options) {
  if (kind == 0)
    return std::make_unique<GaussianCritic>(width, options.seed + 1,
                                            static_cast<size_t>(options.knob("most", 120)), 4);
  if (kind == 1) return std::make_unique<ForestCritic>(width, options.seed + 1, 30, 1);
  const auto rate = static_cast<float>(options.learning_rate * options.knob("rate", 3));
  return std::make_unique<MlpCritic>(width, options.seed + 1, static_cast<int>(options.knob("members", 3)),
                                     rate, static_cast<int>(options.knob("steps", 12)));
}

}  // namespace

ModelAgent::ModelAgent(std::string name, const Space& space, const AgentOptions& options)
    : name_(std::move(name)),
      space_(space),
      options_(options),
      policy_on_(name_ != "value" && options.knob("policy", 1) > 0),
      crossover_(options.knob("crossover", 1) > 0),
      local_(options.knob("local", 1) > 0),
      mask_(options.knob("mask", 1) > 0),
      seen_(space),
      rng_(options.seed),
      features_(space),
      policy_(space, static_cast<float>(options.learning_rate * options.knob("policy_rate", 100))) {
  if (name_ == "value") options_.prior = nullptr;
  if (name_ == "ppo") return;
  critic_ = make_critic(static_cast<int>(options.knob("critic", name_ == "value" ? 2 : 0)),
                        features_.width() + (options_.prior ? 1 : 0), options_);
  feasible_ = std::make_unique<ForestCritic>(features_.width(), options.seed + 2, 15, 1);
}

double ModelAgent::exploration() const {
  return options_.exploration_rate * (0.2 + 0.8 * std::exp(-static_cast<double>(trials_.size()) / 100));
}

bool ModelAgent::push(const Point& point) {
  if (!seen_.add(point)) return false;
  queue_.push_back(point);
  return true;
}

std::vector<float> ModelAgent::prior_of(const std::vector<Point>& points) {
  std::vector<float> result(points.size(), 0);
  if (!options_.prior) return result;
  std::vector<Point> fresh;
  for (const Point& point : points)
    if (!prior_.count(point_key(point))) fresh.push_back(point);
  if (!fresh.empty()) {
    const std::vector<float> values = options_.prior->expected(space_, fresh);
    for (size_t i = 0; i < fresh.size(); ++i) prior_[point_key(fresh[i])] = values[i];
  }
  for (size_t i = 0; i < points.size(); ++i) result[i] = prior_.at(point_key(points[i]));
  return result;
}

// Where something is expected, the best of it is tried first: of the whole list, or of a sample and what lies
// around its best.
void ModelAgent::begin() {
  begun_ = true;
  if (!options_.prior) return;
  constexpr size_t kKept = 200, kSampled = 2000;
  std::vector<Point> points = space_.listed();
  if (points.empty() || points.size() > 50'000) {
    points.clear();
    Seen here(space_);
    for (size_t i = 0; i < kSampled; ++i)
      if (auto p = space_.sample(rng_, 50); !p)
        break;
      else if (here.add(*p))
        points.push_back(std::move(*p));
    for (int pass = 0; pass < 3 && !points.empty(); ++pass) {
      const std::vector<float> values = prior_of(points);
      std::vector<size_t> order(points.size());
      for (size_t i = 0; i < order.size(); ++i) order[i] = i;
      std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
      for (size_t i = 0; i < std::min<size_t>(order.size(), 12); ++i)
        for (Point& p : space_.variations(Point(points[order[i]])))
          if (here.add(p)) points.push_back(std::move(p));
    }
  }
  const std::vector<float> values = prior_of(points);
  std::vector<size_t> order(points.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  // What was best elsewhere and what is expected to be best here take turns.
  std::vector<Point> examples = options_.prior->examples(space_);
  examples.resize(std::min(examples.size(), kExamples));
  Seen here(space_);
  for (size_t i = 0; i < std::max(std::min(order.size(), kKept), examples.size()); ++i) {
    if (i < examples.size() && here.add(examples[i])) expected_.push_back(examples[i]);
    if (i < order.size() && here.add(points[order[i]])) expected_.push_back(points[order[i]]);
  }
}

std::vector<Point> ModelAgent::candidates() {
  std::vector<Point> result;
  Seen here(space_);
  const auto add = [&](Point point) {
    if (!seen_.has(point) && here.add(point)) result.push_back(std::move(point));
  };
  const auto knob = [&](const char* name, double otherwise) {
    return static_cast<size_t>(options_.knob(name, otherwise));
  };
  for (const Point& point : expected_) add(point);
  const size_t near = std::min(good_.size(), knob("near", 12));
  for (size_t i = 0; local_ && i < near; ++i)
    for (Point& p : space_.variations(trials_[good_[i]].point, mask_)) add(std::move(p));
  const size_t parents = std::min(good_.size(), knob("parents", 24));
  for (size_t i = 0; crossover_ && parents > 1 && i < knob("children", 100); ++i) {
    Point p = trials_[good_[rng_.below(parents)]].point;
    const Point& q = trials_[good_[rng_.below(parents)]].point;
    for (size_t d = 0; d < p.size(); ++d)
      if (rng_.uniform() < 0.5) p[d] = q[d];
    if (rng_.uniform() < 0.3) {
      const size_t d = rng_.below(p.size());
      if (const auto& choices = space_.allowed(p[0], d); !choices.empty())
        p[d] = choices[rng_.below(choices.size())];
    }
    space_.make_canonical(p);
    if (!mask_ || space_.legal(p)) add(std::move(p));
  }
  for (size_t i = 0, misses = 0; policy_on_ && misses < 3 && i < knob("imagined", 60); ++i) {
    auto p = policy_.sample(rng_, exploration(), mask_);
    if (p)
      add(std::move(*p));
    else
      ++misses;
  }
  for (size_t i = 0, misses = 0; misses < 3 && i < knob("uniform", 200); ++i) {
    auto p = mask_ ? space_.sample(rng_, 50) : space_.sample_product(rng_);
    if (p)
      add(std::move(*p));
    else
      ++misses;
  }
  return result;
}

Predicted ModelAgent::predict(const std::vector<Point>& points, const Rows& rows) {
  const bool column = options_.prior != nullptr;  // what is expected is a feature too
  const size_t width = features_.width();
  Rows x{width + (column ? 1 : 0), {}};
  std::vector<float> y;
  std::vector<Point> told;
  const double best = trials_[good_[0]].told.cost;
  for (const size_t t : good_) {
    features_.write(trials_[t].point, x.add());
    y.push_back(squeezed_cost(trials_[t].told.cost, best));
    told.push_back(trials_[t].point);
  }
  // How much of the prior holds here: least squares, drawn to 1 as if by three trials.
  float share = 0, here = 0, there = 0;
  const std::vector<float> expected = prior_of(told);
  if (options_.prior) {
    for (size_t i = 0; i < y.size(); ++i) {
      here += y[i] / static_cast<float>(y.size());
      there += expected[i] / static_cast<float>(y.size());
    }
    float together = 3 * 0.02f, squares = 3 * 0.02f;
    for (size_t i = 0; i < y.size(); ++i) {
      together += (y[i] - here) * (expected[i] - there);
      squares += (expected[i] - there) * (expected[i] - there);
    }
    share = std::clamp(together / squares, 0.0f, 1.2f);
    for (size_t i = 0; i < y.size(); ++i) y[i] -= share * expected[i];
  }
  constexpr float kWeight = 3;  // of that feature beside the parameters', which have a spread of 1
  if (column)
    for (size_t i = 0; i < y.size(); ++i) x.values[i * x.width + width] = kWeight * expected[i];
  critic_->fit(x, y);
  const std::vector<float> ahead = prior_of(points);
  Rows asked{x.width, {}};
  if (column)
    for (size_t i = 0; i < points.size(); ++i) {
      float* row = asked.add();
      std::copy_n(rows.row(i), width, row);
      row[width] = kWeight * ahead[i];
    }
  Predicted predicted = critic_->predict(column ? asked : rows);
  if (options_.prior) {
    for (size_t i = 0; i < points.size(); ++i) predicted.mean[i] += share * ahead[i];
  }
  return predicted;
}

std::vector<Point> ModelAgent::ranked(const std::vector<Point>& points) {
  Rows rows{features_.width(), {}};
  for (const Point& p : points) features_.write(p, rows.add());
  const Predicted predicted = predict(points, rows);
  std::vector<float> chance(points.size(), 1.0f);
  if (good_.size() < trials_.size()) {
    Rows all{features_.width(), {}};
    std::vector<float> ok;
    for (const Trial& t : trials_) {
      features_.write(t.point, all.add());
      ok.push_back(t.told.ok ? 1.0f : 0.0f);
    }
    feasible_->fit(all, ok);
    chance = feasible_->predict(rows).mean;
  }
  // Two ways to rank, dealt out at random: expected improvement goes for what is near, an optimistic bound
  // for what is unknown.
  // The longer nothing got better, the more goes to the unknown.
  const auto stale = static_cast<double>(trials_.size() - improved_at_);
  const double mix = std::min(0.9, options_.knob("mix", 0.6) + stale / options_.knob("stale", 150));
  const double bound = 1.5 + std::min(1.5, stale / 100);
  std::vector<std::pair<double, size_t>> improvement, optimistic;
  std::vector<float> costs;
  expected_gain_ = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    expected_gain_ = std::max(expected_gain_, -static_cast<double>(predicted.mean[i]));
    const double mean = predicted.mean[i], sd = std::max(1e-6f, predicted.sd[i]);
    const double feasible = std::log(std::max(0.02f, chance[i]));
    const double z = -mean / sd;
    const double gain =
        z < -6 ? std::log(sd) - 0.5 * z * z - 2 * std::log(-z) - 0.92
               : std::log(sd * (z * 0.5 * std::erfc(-z * 0.70710678) + 0.39894228 * std::exp(-0.5 * z * z)));
    improvement.emplace_back(-gain - feasible, i);
    optimistic.emplace_back(mean - bound * sd - 0.3 * feasible, i);
    costs.push_back(static_cast<float>(mean - 0.3 * feasible));
  }
  if (policy_on_) learn_policy(points, costs);
  std::sort(improvement.begin(), improvement.end());
  std::sort(optimistic.begin(), optimistic.end());
  std::vector<Point> result;
  std::vector<bool> taken(points.size(), false);
  for (size_t a = 0, b = 0; result.size() < std::min<size_t>(points.size(), 32);) {
    const bool other = rng_.uniform() < mix;
    size_t& at = other ? b : a;
    const auto& order = other ? optimistic : improvement;
    while (at < order.size() && taken[order[at].second]) ++at;
    if (at >= order.size()) break;
    taken[order[at].second] = true;
    result.push_back(points[order[at].second]);
  }
  return result;
}

// Advantages are standardised; at most 64 points, the cheapest half and a draw of the others.
void ModelAgent::learn_policy(const std::vector<Point>& points, const std::vector<float>& costs) {
  std::vector<size_t> order(points.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return costs[a] < costs[b]; });
  constexpr size_t kMost = 64;
  if (order.size() > kMost) {
    for (size_t i = kMost / 2; i < kMost; ++i) std::swap(order[i], order[i + rng_.below(order.size() - i)]);
    order.resize(kMost);
  }
  std::vector<Point> chosen;
  std::vector<float> advantages;
  double mean = 0, squares = 0;
  for (const size_t i : order) mean += costs[i] / static_cast<double>(order.size());
  for (const size_t i : order) squares += (costs[i] - mean) * (costs[i] - mean);
  const double sd = std::sqrt(squares / static_cast<double>(std::max<size_t>(order.size(), 1))) + 1e-6;
  for (const size_t i : order) {
    chosen.push_back(points[i]);
    advantages.push_back(static_cast<float>(std::clamp((mean - costs[i]) / sd, -2.0, 2.0)));
  }
  policy_.update(chosen, advantages, name_ == "ppo" ? 3 : 1);
}

void ModelAgent::plan_policy_round() {
  const size_t batch = static_cast<size_t>(options_.knob("policy_batch", 12));
  if (policy_batch_.size() >= 4) {
    std::vector<Point> points;
    std::vector<float> costs;
    const double best = good_.empty() ? 0 : trials_[good_[0]].told.cost;
    for (const size_t t : policy_batch_) {
      points.push_back(trials_[t].point);
      costs.push_back(trials_[t].told.ok ? squeezed_cost(trials_[t].told.cost, best) : 1.0f);
    }
    for (size_t i = 0; i < std::min<size_t>(good_.size(), 4); ++i) {  // the best so far are not forgotten
      points.push_back(trials_[good_[i]].point);
      costs.push_back(squeezed_cost(trials_[good_[i]].told.cost, best));
    }
    learn_policy(points, costs);
    policy_batch_.clear();
  }
  for (size_t misses = 0; queue_.size() < batch && misses < 40;) {
    const auto p = policy_.sample(rng_, exploration(), mask_);
    if (!p || !push(*p)) ++misses;
  }
  if (queue_.empty())
    if (const auto p = seen_.fresh(rng_)) push(*p);
}

void ModelAgent::plan_round() {
  if (!begun_) begin();
  if (name_ == "ppo") return plan_policy_round();
  for (const Point& first : space_.firsts()) push(first);
  if (!queue_.empty() || race()) return;
  const auto known = trials_.size();
  const auto random = [&] {
    if (const auto p = seen_.fresh(rng_)) push(*p);
  };
  // A space of a family comes with its default told and each tactic's first tried: a start that a list lacks.
  const bool listed = !space_.listed().empty();
  const auto first = static_cast<size_t>(options_.knob("init", !listed ? 4 : expected_.empty() ? 6 : 8));
  if (known < first || good_.size() < 3) {
    for (const Point& p : expected_)
      if (queue_.size() < 2) push(p);
    while (queue_.size() < 2 && space_.product() > 0) {
      const size_t before = queue_.size();
      random();
      if (queue_.size() == before) return;
    }
    return;
  }
  const auto batch = static_cast<size_t>(
      std::clamp(static_cast<double>(known) * options_.knob("growth", 0.04), 2.0, options_.knob("batch", 8)));
  if (const std::vector<Point> points = candidates(); !points.empty())
    for (const Point& p : ranked(points))
      if (queue_.size() < batch) push(p);
  if (queue_.size() < batch || rng_.uniform() < exploration()) random();
}

std::vector<Point> ModelAgent::ask(int count) {
  std::vector<Point> result;
  while (static_cast<int>(result.size()) < count) {
    if (queue_.empty()) plan_round();
    if (queue_.empty()) break;
    result.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  return result;
}

void ModelAgent::tell(const Point& point, const Told& told) {
  seen_.add(point);
  std::erase(queue_, point);
  trials_.push_back({point, told});
  policy_batch_.push_back(trials_.size() - 1);
  if (!told.ok) return;
  if (good_.empty() || told.cost < trials_[good_[0]].told.cost - 0.002) improved_at_ = trials_.size();
  const auto faster = [&](double cost, size_t t) { return cost < trials_[t].told.cost; };
  good_.insert(std::upper_bound(good_.begin(), good_.end(), told.cost, faster), trials_.size() - 1);
}

}  // namespace thrice::tune
