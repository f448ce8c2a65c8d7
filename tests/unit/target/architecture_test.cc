// Would catch: code loaded on a card that cannot run it, or refused on one that can.
#include "target/architecture.h"

#include <gtest/gtest.h>

namespace thrice::target {
namespace {

TEST(Architecture, CodeRunsUpwardsWithinItsMajorNumber) {
  EXPECT_TRUE(cubin_runs_on("sm_80", "sm_80"));
  EXPECT_TRUE(cubin_runs_on("sm_80", "sm_86"));
  EXPECT_TRUE(cubin_runs_on("sm_90", "sm_90a"));
  EXPECT_TRUE(cubin_runs_on("sm_90a", "sm_90a"));
  EXPECT_TRUE(cubin_runs_on("sm_100f", "sm_103a"));
  EXPECT_FALSE(cubin_runs_on("sm_86", "sm_80"));
  EXPECT_FALSE(cubin_runs_on("sm_80", "sm_90a"));
  EXPECT_FALSE(cubin_runs_on("sm_90", "sm_100a"));
  EXPECT_FALSE(cubin_runs_on("sm_100a", "sm_103a"));  // "a": that architecture and no other
  EXPECT_FALSE(cubin_runs_on("sm_80x2", "sm_80"));
  EXPECT_FALSE(cubin_runs_on("", "sm_80"));
  EXPECT_FALSE(cubin_runs_on("sm_80", "AMD EPYC | PoCL"));
}

TEST(Architecture, PtxRunsOnEveryCardThatIsNotOlder) {
  EXPECT_TRUE(ptx_runs_on("compute_80", "sm_80"));
  EXPECT_TRUE(ptx_runs_on("compute_80", "sm_120a"));
  EXPECT_FALSE(ptx_runs_on("compute_90", "sm_89"));
  EXPECT_FALSE(ptx_runs_on("compute_90a", "sm_100a"));  // "a": that architecture and no other
  EXPECT_FALSE(ptx_runs_on("sm_80", "sm_80"));
  EXPECT_EQ(oldest_virtual({"sm_90a", "sm_86", "sm_120a"}), "compute_86");
  EXPECT_EQ(oldest_virtual({"sm_100a"}), "compute_100");
  EXPECT_EQ(oldest_virtual({"PoCL"}), "");
}

}  // namespace
}  // namespace thrice::target
