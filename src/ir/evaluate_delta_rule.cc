// Linear attention with a gated delta rule, token by token.
#include <algorithm>
#include <cmath>

#include "ir/delta_rule.h"
#include "ir/evaluate_groups.h"
#include "ir/evaluate_threads.h"

namespace thrice::ir {
namespace {

struct Rule {
  const Array &q, &k, &v, &g, &beta, &a_log, &dt_bias;
  const Array* first;  // null: zeros
  int64_t heads, depth, width;
  double lower_bound, epsilon, scale;
};

double inverse_length(const double* x, int64_t n, double epsilon) {
  double squares = 0;
  for (int64_t i = 0; i < n; ++i) squares += x[i] * x[i];
  return 1 / std::sqrt(squares + epsilon);
}

// Tokens [begin, end) of one head; `state` [depth, width] is the sequence's last state.
void walk(const Rule& r, int64_t begin, int64_t end, int64_t head, double* state, Array& out) {
  const int64_t gates = r.g.shape[3], biases = r.dt_bias.shape[1];
  const double rate = std::exp(r.a_log.f[static_cast<size_t>(head)]);
  std::vector<double> update(static_cast<size_t>(r.width));
  for (int64_t t = begin; t < end; ++t) {
    const int64_t row = t * r.heads + head;
    const double *q = &r.q.f[static_cast<size_t>(row * r.depth)],
                 *k = &r.k.f[static_cast<size_t>(row * r.depth)],
                 *v = &r.v.f[static_cast<size_t>(row * r.width)];
    const double of_q = r.scale * inverse_length(q, r.depth, r.epsilon),
                 of_k = inverse_length(k, r.depth, r.epsilon);
    std::fill(update.begin(), update.end(), 0.0);
    for (int64_t d = 0; d < r.depth; ++d) {
      const double gate = r.g.f[static_cast<size_t>(row * gates + (gates == 1 ? 0 : d))] +
                          r.dt_bias.f[static_cast<size_t>(head * biases + (biases == 1 ? 0 : d))];
      const double decay = std::exp(r.lower_bound / (1 + std::exp(-rate * gate)));
      for (int64_t w = 0; w < r.width; ++w) {
        double& s = state[d * r.width + w];
        s *= decay;
        update[static_cast<size_t>(w)] += of_k * k[d] * s;
      }
    }
    const double share = 1 / (1 + std::exp(-r.beta.f[static_cast<size_t>(row)]));
    for (int64_t w = 0; w < r.width; ++w)
      update[static_cast<size_t>(w)] = share * (v[w] - update[static_cast<size_t>(w)]);
    double* o = &out.f[static_cast<size_t>(row * r.width)];
    for (int64_t d = 0; d < r.depth; ++d)
      for (int64_t w = 0; w < r.width; ++w) {
        double& s = state[d * r.width + w];
        s += of_k * k[d] * update[static_cast<size_t>(w)];
        o[w] += of_q * q[d] * s;
      }
  }
}

}  // namespace

Results evaluate_delta_rule(const Node& node, const Operands& x) {
  const Array& q = operand(node, x, 0);
  const Array& v = operand(node, x, 2);
  const int64_t depth = q.shape[3], width = v.shape[3];
  double scale = node.float_attr("scale", 0);
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(depth));
  const Rule rule{q,
                  operand(node, x, 1),
                  v,
                  operand(node, x, 3),
                  operand(node, x, 4),
                  operand(node, x, 5),
                  operand(node, x, 6),
                  has_operand(x, kDeltaRuleFirst) ? x[kDeltaRuleFirst].get() : nullptr,
                  q.shape[2],
                  depth,
                  width,
                  node.float_attr("lower_bound", -5),
                  node.float_attr("epsilon", 1e-6),
                  scale};
  const int64_t tokens = q.shape[0] * q.shape[1];
  std::vector<int64_t> offsets;
  if (has_operand(x, kDeltaRuleOffsets))
    offsets = ints_of(node, x, kDeltaRuleOffsets);
  else
    for (int64_t b = 0; b <= q.shape[0]; ++b) offsets.push_back(b * q.shape[1]);
  if (offsets.empty()) bad_node(node, "offsets are empty");
  const auto sequences = static_cast<int64_t>(offsets.size()) - 1;
  auto out = make_array(v.dtype, v.shape);
  auto last = make_array(rule.a_log.dtype, {sequences, rule.heads, depth, width});
  if (rule.first != nullptr) last->f = rule.first->f;
  const int64_t state = depth * width;
  parallel_for(sequences * rule.heads, tokens * state * 4 / std::max<int64_t>(sequences, 1),
               [&](int64_t from, int64_t to) {
                 for (int64_t i = from; i < to; ++i) {
                   const auto n = static_cast<size_t>(i / rule.heads);
                   const int64_t begin = std::clamp<int64_t>(offsets[n], 0, tokens);
                   const int64_t end = std::clamp<int64_t>(offsets[n + 1], begin, tokens);
                   walk(rule, begin, end, i % rule.heads, last->f.data() + i * state, *out);
                 }
               });
  return {out, last};
}

}  // namespace thrice::ir
