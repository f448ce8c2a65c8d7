// What was decided about fusion, and against what: for explain.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace thrice::artifact {

struct PricedRegion {
  std::string name;  // "Conv_12 + Relu_13"
  double us = 0, uncertainty_us = 0;
  std::string source;  // "measured record", "roofline"
};

// One way to run the operators of a decision. `us`: what was compared, the sum of costs and their
// uncertainties.
struct FusionAlternative {
  std::string name;  // "chosen", "greedy", "next best", "one by one"
  double us = 0;
  std::vector<PricedRegion> regions;
};

// One part of the graph, decided by itself. Parts that are alike (layers) are one decision.
struct FusionDecision {
  std::vector<std::string> operators;
  int64_t uses = 1;        // parts that are alike
  bool exact = true;       // false: the greedy planner's answer, since the search was cut off
  int64_t candidates = 0;  // regions that could have been taken
  int64_t complete = 0;    // of unions of so many operators each was looked at; of larger ones some
  int64_t states = 0;      // of the dynamic program
  std::string why;         // a sentence
  std::vector<FusionAlternative> alternatives;  // the chosen one first
};

std::string decisions_json(const std::vector<FusionDecision>& decisions);
std::vector<FusionDecision> decisions_from_json(const std::string& text);  // throws kCorrupt

}  // namespace thrice::artifact
