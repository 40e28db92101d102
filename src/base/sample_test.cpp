#include "base/sample.h"

#include <gtest/gtest.h>

namespace mayfly {
namespace {

TEST(Sample, RanksAreOfValuesThatWereSeen) {
  const std::vector<double> sorted{1, 2, 3, 4};
  EXPECT_EQ(nearest_rank(sorted, 0), 1);
  EXPECT_EQ(nearest_rank(sorted, 0.25), 1);
  EXPECT_EQ(nearest_rank(sorted, 0.26), 2);
  EXPECT_EQ(nearest_rank(sorted, 1), 4);
}

// 8 of 10 with z = 2: centre (0.8 + 4 / 20) / 1.4 = 0.71429, half of the width 2 / 1.4 sqrt(0.016 + 0.01) = 0.23035.
TEST(Sample, WilsonsIntervalHoldsTheShareThatWasSeen) {
  const auto bounds = wilson_interval(0.8, 10, 2);
  EXPECT_NEAR(bounds.low, 0.48394, 1e-5);
  EXPECT_NEAR(bounds.high, 0.94463, 1e-5);
  EXPECT_EQ(wilson_interval(1, 10, 2).high, 1);
  EXPECT_EQ(wilson_interval(0, 10, 2).low, 0);
}

}  // namespace
}  // namespace mayfly
