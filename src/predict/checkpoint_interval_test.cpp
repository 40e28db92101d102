#include "predict/checkpoint_interval.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace mayfly {
namespace {

double interval(double cost, double mean) { return checkpoint_interval(Seconds(cost), Seconds(mean)).count(); }

/// Time that a second of training takes when losses come at random, the mean time between them being one: writing
/// after each `work`, and starting anew from the last checkpoint (Daly's exact expectation, without restarts).
double expected_time(double work, double cost) { return std::expm1(work + cost) / work; }

// C = 2 s, M = 100 s: Young 20 s; C/2M = 0.01: 20 (1 + 0.1/3 + 0.01/9) - 2 = 18.6889 s.
TEST(CheckpointInterval, IsDalysHigherOrderForm) { EXPECT_NEAR(interval(2, 100), 18.6889, 1e-4); }

TEST(CheckpointInterval, LosesNoMoreThanTheBestOfAllIntervals) {
  constexpr double kMean = 1000;
  for (const double cost : {0.001, 0.01, 0.1, 0.3, 0.7}) {
    double best = std::numeric_limits<double>::infinity();
    for (double work = 0.001; work < 3; work *= 1.01) best = std::min(best, expected_time(work, cost));
    EXPECT_LT(expected_time(interval(cost * kMean, kMean) / kMean, cost), 1.003 * best) << cost;
  }
}

TEST(CheckpointInterval, GrowsWithCostAndWithSafety) {
  for (double factor = 1; factor < 100; factor *= 2) {
    EXPECT_LT(interval(0.1 * factor, 1000), interval(0.2 * factor, 1000));
    EXPECT_LT(interval(1, 100 * factor), interval(1, 200 * factor));
  }
}

TEST(CheckpointInterval, StaysWithinASecondAndAnHour) {
  EXPECT_EQ(interval(0, 1000), 1);
  EXPECT_EQ(interval(1e-9, 1000), 1);
  EXPECT_EQ(interval(1, std::numeric_limits<double>::infinity()), 3600);
  EXPECT_EQ(interval(0, std::numeric_limits<double>::infinity()), 3600);
  EXPECT_EQ(interval(60, 1e9), 3600);
}

// Above twice M Daly's advice is M itself.
TEST(CheckpointInterval, IsTheMeanTimeWhereCheckpointsTakeLonger) { EXPECT_EQ(interval(250, 100), 100); }

}  // namespace
}  // namespace mayfly
