// Catches: a model's limit that a lucky original makes too tight, or a broken original too loose.
#include "flow/whole_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace thrice::flow {
namespace {

TEST(WholeModel, TheOriginalsErrorStaysNearTheHosts) {
  EXPECT_EQ(ordinary_error(3e-6, 2e-6), 3e-6);    // as the device has it
  EXPECT_EQ(ordinary_error(3.2e-6, 7e-6), 7e-6);  // a lucky draw
  EXPECT_EQ(ordinary_error(0.5, 4e-6), 8e-6);     // a broken kernel in the original
  EXPECT_EQ(ordinary_error(3e-6, std::numeric_limits<double>::infinity()), 3e-6);  // the host overflowed
  EXPECT_EQ(ordinary_error(3e-6, std::nan("")), 3e-6);
}

}  // namespace
}  // namespace thrice::flow
