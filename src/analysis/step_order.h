// In which order to run steps that wait for each other, so that the least memory is alive at one time.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace thrice::analysis {

// One step: the pieces of memory that it reads and makes. A piece is made by one step.
struct OrderedStep {
  std::vector<size_t> reads, makes;  // pieces, each once
  std::vector<size_t> before;        // steps that must have run, each once
  int64_t scratch = 0;               // bytes, while it runs
  // (piece read, piece made): the second may lie where the first did, if no later step reads the first. A
  // piece stands in at most one pair of a step that is taken: the first that fits.
  std::vector<std::pair<size_t, size_t>> shares;
};
struct OrderProblem {
  std::vector<OrderedStep> steps;
  std::vector<int64_t> bytes;  // by piece; 0: it lies elsewhere
};

enum class OrderMethod {
  kGiven,   // the order 0, 1, 2, ... : none that was found is better
  kExact,   // the search over sets of steps that have run came to its end: no order is better
  kGreedy,  // too many such sets: the better of two greedy orders
};
struct StepOrder {
  std::vector<size_t> order;
  int64_t peak = 0, given_peak = 0;  // most bytes alive at one time
  OrderMethod method = OrderMethod::kGiven;
  bool is_optimal = false;
  size_t states = 0;  // sets of steps that were looked at
};

// Most bytes that are alive at one time in this (topological) order of all steps.
int64_t peak_of(const OrderProblem& problem, const std::vector<size_t>& order);

// Steps are given in a topological order. Sets of steps that have run (downsets) are looked at best first, by
// the most memory so far; a step that fits and leaves no more than it found is run at once, since that is
// never worse. Exact up to `max_states` sets, which width 4 or 20 steps stay below in practice; beyond that
// the better of two greedy orders (next is the step that frees most; that needs least). Ties keep the given
// order. Deterministic.
StepOrder order_steps(const OrderProblem& problem, size_t max_states = 20'000);

}  // namespace thrice::analysis
