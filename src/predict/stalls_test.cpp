#include "predict/stalls.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace mayfly {
namespace {

// The figures of Stash's formulas, with synthetic runs half as long as the real ones (d = 2): T0 = 100, T1 = 160,
// T1net = 400, T2 / d = 250, T3 / d = 200.
TEST(Stalls, AreDifferencesOfRunsThatDifferInOneThing) {
  const auto found = stalls({.one = {100}, .all = {160}, .cold = {250}, .warm = {200}, .machines = {400}});
  ASSERT_TRUE(found);
  EXPECT_DOUBLE_EQ(found->interconnect.seconds.value, 60);
  EXPECT_DOUBLE_EQ(found->interconnect.share, 0.375);
  EXPECT_DOUBLE_EQ(found->network->share, 1.5);
  EXPECT_DOUBLE_EQ(found->prep.seconds.value, 40);
  EXPECT_DOUBLE_EQ(found->prep.share, 0.2);
  EXPECT_DOUBLE_EQ(found->fetch.seconds.value, 50);  // cold minus warm, where the published code has cold minus prep
  EXPECT_DOUBLE_EQ(found->fetch.share, 0.2);
  EXPECT_DOUBLE_EQ(found->step.value, 250);
}

TEST(Stalls, WhatIsFasterWithMoreIsNoStall) {
  const auto found = stalls({.one = {100}, .all = {98}, .cold = {98}, .warm = {98}});
  ASSERT_TRUE(found);
  EXPECT_DOUBLE_EQ(found->interconnect.seconds.value, -2);
  EXPECT_EQ(found->interconnect.share, 0);
  EXPECT_FALSE(found->interconnect.certain());
  EXPECT_FALSE(found->network);
}

TEST(Stalls, ADisturbanceThatHitsARoundAsAWholeCancels) {
  StallRuns runs;
  Rng random(7);
  for (int round = 0; round < 10; ++round) {
    const double slow = 1 + 0.5 * random.uniform();  // the machine is up to half slower, for all of a round
    runs.one.push_back(0.100 * slow);
    runs.all.push_back(0.100 * slow);
    runs.warm.push_back(0.100 * slow + 0.020);
    runs.cold.push_back(0.100 * slow + 0.020);
  }
  const auto found = stalls(runs);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->prep.certain());
  EXPECT_NEAR(found->prep.seconds.value, 0.020, 1e-9);
  EXPECT_NEAR(found->prep.seconds.high - found->prep.seconds.low, 0, 1e-9);
  EXPECT_FALSE(found->fetch.certain());
}

TEST(Stalls, NeedTheSameRoundsOfEach) {
  EXPECT_FALSE(stalls({}));
  EXPECT_FALSE(stalls({.one = {1}, .all = {1}, .cold = {1, 1}, .warm = {1}}));
  EXPECT_FALSE(stalls({.one = {1}, .all = {1}, .cold = {1}, .warm = {1}, .machines = {1, 1}}));
}

}  // namespace
}  // namespace mayfly
