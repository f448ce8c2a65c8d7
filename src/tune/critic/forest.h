// Regression trees grown on random halves of what was told; the spread of their answers is the doubt. Splits
// are between neighbouring choices, so features are places, not values.
#pragma once
#include "base/rng.h"
#include "tune/critic/critic.h"

namespace thrice::tune {

class ForestCritic : public Critic {
 public:
  ForestCritic(size_t width, uint64_t seed, int trees, int leaf);
  void fit(const Rows& x, const std::vector<float>& y) override;
  Predicted predict(const Rows& x) override;

 private:
  struct Node {
    int feature = -1;  // -1: a leaf
    float split = 0, value = 0;
    int left = 0, right = 0;
  };
  int grow(std::vector<Node>& tree, const Rows& x, const std::vector<float>& y, std::vector<uint32_t>& rows,
           size_t begin, size_t end);
  size_t width_;
  Rng rng_;
  size_t trees_, leaf_;
  std::vector<std::vector<Node>> forest_;
};

}  // namespace thrice::tune
