#include "tune/critic/forest.h"

#include <algorithm>
#include <cmath>

namespace thrice::tune {

ForestCritic::ForestCritic(size_t width, uint64_t seed, int trees, int leaf)
    : width_(width), rng_(seed), trees_(static_cast<size_t>(trees)), leaf_(static_cast<size_t>(leaf)) {}

int ForestCritic::grow(std::vector<Node>& tree, const Rows& x, const std::vector<float>& y,
                       std::vector<uint32_t>& rows, size_t begin, size_t end) {
  const int here = static_cast<int>(tree.size());
  tree.emplace_back();
  double sum = 0;
  for (size_t i = begin; i < end; ++i) sum += y[rows[i]];
  const auto n = static_cast<double>(end - begin);
  tree[static_cast<size_t>(here)].value = static_cast<float>(sum / n);
  if (end - begin < 2 * leaf_) return here;
  // Best of random cuts, one a feature (extremely randomised trees): nothing is sorted.
  double best_gain = 1e-9;
  int best_feature = -1;
  float best_split = 0;
  for (size_t f = 0; f < width_; ++f) {
    float low = x.row(rows[begin])[f], high = low;
    for (size_t i = begin + 1; i < end; ++i) {
      low = std::min(low, x.row(rows[i])[f]);
      high = std::max(high, x.row(rows[i])[f]);
    }
    if (!(low < high)) continue;
    const float split = low + (high - low) * static_cast<float>(rng_.uniform());
    double left = 0, count = 0;
    for (size_t i = begin; i < end; ++i)
      if (x.row(rows[i])[f] <= split) {
        left += y[rows[i]];
        ++count;
      }
    if (count < 1 || count > n - 1) continue;
    const double gain = left * left / count + (sum - left) * (sum - left) / (n - count) - sum * sum / n;
    if (gain > best_gain) {
      best_gain = gain;
      best_feature = static_cast<int>(f);
      best_split = split;
    }
  }
  if (best_feature < 0) return here;
  const auto middle = std::partition(rows.begin() + static_cast<std::ptrdiff_t>(begin),
                                     rows.begin() + static_cast<std::ptrdiff_t>(end),
                                     [&](uint32_t r) { return x.row(r)[best_feature] <= best_split; });
  const auto cut = static_cast<size_t>(middle - rows.begin());
  const int left = grow(tree, x, y, rows, begin, cut);
  const int right = grow(tree, x, y, rows, cut, end);
  Node& node = tree[static_cast<size_t>(here)];
  node.feature = best_feature;
  node.split = best_split;
  node.left = left;
  node.right = right;
  return here;
}

void ForestCritic::fit(const Rows& x, const std::vector<float>& y) {
  forest_.assign(trees_, {});
  for (auto& tree : forest_) {
    std::vector<uint32_t> rows(x.count());
    for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<uint32_t>(i);
    grow(tree, x, y, rows, 0, rows.size());
  }
}

Predicted ForestCritic::predict(const Rows& x) {
  Predicted result;
  const size_t n = x.count();
  result.mean.resize(n);
  result.sd.resize(n);
  for (size_t i = 0; i < n; ++i) {
    double sum = 0, squares = 0;
    for (const auto& tree : forest_) {
      size_t at = 0;
      while (tree[at].feature >= 0)
        at = static_cast<size_t>(x.row(i)[tree[at].feature] <= tree[at].split ? tree[at].left
                                                                              : tree[at].right);
      sum += tree[at].value;
      squares += static_cast<double>(tree[at].value) * tree[at].value;
    }
    const auto t = static_cast<double>(trees_);
    result.mean[i] = static_cast<float>(sum / t);
    result.sd[i] = static_cast<float>(std::sqrt(std::max(0.0, squares / t - sum / t * sum / t)));
  }
  return result;
}

}  // namespace thrice::tune
