// A factorised, autoregressive policy: one softmax over the choices of each dimension, whose logits depend on
// the choices before it. What is illegal is masked: in a listed space choice by choice, elsewhere by drawing
// again. PPO with a clipped ratio. One workload is one context, so the part of a network that would see it is
// a constant: the logits themselves.
#pragma once
#include <string>
#include <vector>

#include "tune/space.h"

namespace thrice::tune {

class Policy {
 public:
  Policy(const Space& space, float learning_rate);
  // nullopt: `attempts` draws were illegal. Masked: only legal points, each choice with `exploration` chance
  // uniform over what is legal there.
  std::optional<Point> sample(Rng& rng, double exploration, bool masked, int attempts = 10) const;
  double log_probability(const Point& point) const;  // unmasked
  // `advantage`: how much better than usual each point was, standardised by the caller.
  void update(const std::vector<Point>& points, const std::vector<float>& advantages, int epochs);
  std::string save() const;
  void load(const std::string& text);  // throws kCorrupt where the shape differs

 private:
  size_t count(size_t d) const { return space_.dimensions()[d].choices.size(); }
  // Probabilities of a dimension given the choices before it; unused choices of the tactic get none.
  void probabilities(const Point& point, size_t d, std::vector<float>& p) const;
  void step(const Point& point, float scale);  // scale x gradient of log probability, plus entropy

  const Space& space_;
  float learning_rate_;
  std::vector<std::vector<float>> bias_;                  // by dimension and choice
  std::vector<std::vector<std::vector<float>>> weights_;  // by dimension and earlier one: choice x choice
};

}  // namespace thrice::tune
