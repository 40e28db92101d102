#include "control/loss_watch.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"

namespace mayfly {
namespace {

/// Epochs of 10,000 samples in steps of 50, so 1 % of an epoch would be two steps.
constexpr LossWatchOptions kSmall{.epoch = 10'000, .batch = 50, .predicted = 400'000};
/// From 4 towards 0.4; the loss is 0.8 after 6,667 steps: 3000 / 0.4 - 3000 / 3.6.
constexpr LossCurve kTruth{.form = LossCurve::Form::common_start, .scale = 3000, .floor = 0.4, .initial = 4};

/// A run up to `steps`, with noise.
void train(LossWatch& watch, int from, int steps, double noise = 0, std::uint64_t seed = 1) {
  Rng rng(seed);
  for (int step = from + 1; step <= steps; ++step)
    watch.saw(50.0 * step, loss_after(kTruth, {}, step) + noise * rng.normal());
}

TEST(LossWatch, AveragesTheLastHundredthOfAnEpoch) {
  LossWatch watch({.epoch = 1000, .batch = 1});
  for (int step = 1; step <= 9; ++step) watch.saw(step, step);
  EXPECT_FALSE(watch.training_loss().has_value());
  watch.saw(10, 10);
  EXPECT_DOUBLE_EQ(*watch.training_loss(), 5.5);
  watch.saw(11, 11);
  EXPECT_DOUBLE_EQ(*watch.training_loss(), 6.5);
}

TEST(LossWatch, AveragesFiveStepsAtLeast) {
  LossWatch watch(kSmall);
  for (int step = 1; step <= 5; ++step) watch.saw(50 * step, step);
  EXPECT_DOUBLE_EQ(*watch.training_loss(), 3);
}

// 5 % of 400,000 samples are 400 steps.
TEST(LossWatch, EstimatesNothingBeforeEnoughWasSeen) {
  LossWatch watch(kSmall);
  train(watch, 0, 399, 0.01);
  EXPECT_FALSE(watch.samples_to(0.8).has_value());
  train(watch, 399, 400, 0.01);
  EXPECT_TRUE(watch.samples_to(0.8).has_value());
}

TEST(LossWatch, FindsTheCurveBehindTheSteps) {
  LossWatch watch(kSmall);
  train(watch, 0, 2000);
  const auto found = watch.samples_to(0.8);
  ASSERT_TRUE(found && found->middle);
  EXPECT_NEAR(*found->middle, 50 * 6666.7, 0.01 * 50 * 6666.7);
}

// A floor of 0.4 is seen well enough after half the way.
TEST(LossWatch, SaysThatALossBelowTheFloorIsNeverReached) {
  LossWatch watch(kSmall);
  train(watch, 0, 4000, 0.005);
  const auto found = watch.samples_to(0.3);
  ASSERT_TRUE(found.has_value());
  EXPECT_FALSE(found->middle.has_value());
  EXPECT_FALSE(found->p90.has_value());
}

TEST(LossWatch, NeverEstimatesLessThanWasTrained) {
  LossWatch watch(kSmall);
  train(watch, 0, 8000, 0.01);
  const auto found = watch.samples_to(0.8);
  ASSERT_TRUE(found && found->middle && found->p10);
  EXPECT_EQ(*found->middle, 50 * 8000.0);
  EXPECT_EQ(*found->p10, 50 * 8000.0);
}

// 100 runs at 30 % of the way, noise of 0.1 a step: 8 of 10 should have the truth in their band.
TEST(LossWatch, HasTheTruthInItsBandAsOftenAsItSays) {
  const double truth = 50 * *steps_to_loss(kTruth, {}, 0.8);
  int covered = 0;
  double worst = 0;
  constexpr int kRuns = 100;
  for (int run = 0; run < kRuns; ++run) {
    LossWatch watch(kSmall);
    train(watch, 0, 2000, 0.1, static_cast<std::uint64_t>(run) + 1);
    const auto found = watch.samples_to(0.8);
    ASSERT_TRUE(found && found->middle) << run;
    worst = std::max(worst, std::fabs(*found->middle / truth - 1));
    covered += found->p10 && *found->p10 <= truth && (!found->p90 || *found->p90 >= truth) ? 1 : 0;
  }
  EXPECT_GE(covered, 70);
  EXPECT_LE(covered, 95);
  EXPECT_LT(worst, 0.1);
}

TEST(LossWatch, NarrowsItsBandAsTheRunGoesOn) {
  double before = 1e300;
  for (const int steps : {1000, 2000, 4000}) {
    LossWatch watch(kSmall);
    train(watch, 0, steps, 0.05);
    const auto found = watch.samples_to(0.8);
    ASSERT_TRUE(found && found->p10 && found->p90) << steps;
    EXPECT_LT(*found->p90 - *found->p10, before) << steps;
    before = *found->p90 - *found->p10;
  }
}

// The steps beyond the checkpoint, here nonsense, are trained again.
TEST(LossWatch, ForgetsWhatWasRolledBack) {
  LossWatch watch(kSmall);
  train(watch, 0, 2000);
  for (int step = 2001; step <= 2500; ++step) watch.saw(50.0 * step, 9);
  watch.roll_back(50 * 2000);
  EXPECT_FALSE(watch.training_loss().has_value());
  train(watch, 2000, 2500);
  EXPECT_NEAR(*watch.samples_to(0.8)->middle, 50 * 6666.7, 0.01 * 50 * 6666.7);
  EXPECT_NEAR(*watch.training_loss(), loss_after(kTruth, {}, 2498), 1e-6);
}

}  // namespace
}  // namespace mayfly
