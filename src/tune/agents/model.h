// Agents that learn a model of the space, in rounds: candidates from several sources, ranked by a critic, the
// first few measured, everything told is learned.
//   value         critic: an ensemble of networks; no policy, nothing from elsewhere
//   actor_critic  critic: a Gaussian process over what a prior expects; policy as one more source
//   ppo           the policy alone
// Knobs (docs/agent.md): critic (0 Gaussian process, 1 trees, 2 networks), policy, crossover, local, mask,
// race (0 leaves that part out), and the sizes named below.
#pragma once
#include <deque>
#include <memory>

#include "tune/agent.h"
#include "tune/critic/critic.h"
#include "tune/critic/features.h"
#include "tune/policy.h"

namespace thrice::tune {

class ModelAgent : public Agent {
 public:
  ModelAgent(std::string name, const Space& space, const AgentOptions& options);
  std::string name() const override { return name_; }
  std::vector<Point> ask(int count) override;
  void tell(const Point& point, const Told& told) override;
  double expected_gain() const override { return expected_gain_; }
  void save(std::string& state) const override;
  void load(const std::string& state) override;

 private:
  struct Trial {
    Point point;
    Told told;
  };
  void begin();
  void plan_round();
  void plan_policy_round();
  bool race();  // plans a rung of the race of tactics; false: it is over
  std::vector<Point> candidates();
  std::vector<Point> ranked(const std::vector<Point>& points);
  // Mean and doubt of points as the critic sees them now, prior included.
  Predicted predict(const std::vector<Point>& points, const Rows& rows);
  std::vector<float> prior_of(const std::vector<Point>& points);
  void learn_policy(const std::vector<Point>& points, const std::vector<float>& costs);
  double exploration() const;  // decays to a fifth
  bool push(const Point& point);

  std::string name_;
  const Space& space_;
  AgentOptions options_;
  bool policy_on_, crossover_, local_, mask_;
  Seen seen_;
  Rng rng_;
  Features features_;
  std::unique_ptr<Critic> critic_, feasible_;
  Policy policy_;
  std::vector<Trial> trials_;
  std::vector<size_t> good_;     // of trials_, ascending by cost
  std::vector<Point> expected_;  // the best by the prior, in its order
  std::unordered_map<uint64_t, float> prior_;
  std::deque<Point> queue_;
  std::vector<size_t> policy_batch_;  // of trials_, not yet learned by the policy
  size_t improved_at_ = 0;            // trials told when the best last got better
  bool begun_ = false;
  std::vector<uint16_t> racing_;  // tactics that are still in the race; empty before it and after it
  int rung_ = -1;                 // -1: not begun
  double expected_gain_ = 0;      // of the last round's candidates, by the critic's mean
};

}  // namespace thrice::tune
