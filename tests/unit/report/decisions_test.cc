// Would catch: a decision that a release loses or changes, an alternative, a price or its source that explain
// does not show, a fallback that looks exact.
#include "report/decisions.h"

#include <gtest/gtest.h>
#include <thrice/status.h>

#include "artifact/manifest.h"

namespace thrice::report {
namespace {

using artifact::FusionDecision;

std::vector<FusionDecision> two_decisions() {
  FusionDecision first;
  first.operators = {"Conv_1", "Relu_2"};
  first.uses = 16;
  first.candidates = 3;
  first.complete = 12;
  first.states = 7;
  first.why = "1.50 us below the greedy planner's";
  first.alternatives = {{"chosen", 11.5, {{"Conv_1 + Relu_2", 10, 1.5, "measured record"}}},
                        {"one by one", 20, {{"Conv_1", 9, 4, "roofline"}, {"Relu_2", 5, 2, "roofline"}}}};
  FusionDecision second;
  second.operators = {"a", "b", "c", "d", "e", "f", "g", "h"};
  second.exact = false;
  second.why = "greedy fallback: cut off";
  return {first, second};
}

TEST(Decisions, ComeBackFromARelease) {
  artifact::Manifest manifest;
  EXPECT_EQ(manifest.to_json().find("decisions"), std::string::npos);  // as older releases are
  manifest.decisions = two_decisions();
  const artifact::Manifest back = artifact::Manifest::from_json(manifest.to_json());
  EXPECT_EQ(artifact::decisions_json(back.decisions), artifact::decisions_json(two_decisions()));
  EXPECT_EQ(back.decisions.at(0).alternatives.at(1).regions.at(1).us, 5);
  EXPECT_FALSE(back.decisions.at(1).exact);
  EXPECT_THROW(artifact::decisions_from_json("[{}]"), Error);
}

TEST(Decisions, TextHasAlternativesPricesSourcesAndReasons) {
  const std::string text = decisions_text(two_decisions());
  for (const char* part :
       {"Conv_1, Relu_2 (16 alike)", "exact: 7 states over 3 candidate regions", "up to 12 operators",
        "11.50 us", "10.00 +- 1.50 us  Conv_1 + Relu_2  (measured record)",
        "9.00 +- 4.00 us  Conv_1  (roofline)", "why: 1.50 us below the greedy planner's", "and 2 more",
        "FALLBACK", "why: greedy fallback"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

}  // namespace
}  // namespace thrice::report
