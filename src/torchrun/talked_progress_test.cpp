#include "torchrun/talked_progress.h"

#include <gtest/gtest.h>

namespace mayfly {
namespace {

// Ten steps every two seconds: 5 steps/s. After step 100 of 1000, at 20 s, 900 / 5 = 180 s are left.
TEST(TalkedProgress, PredictsTheEndFromStepsAndTheirTotal) {
  TalkedProgress progress(std::nullopt);
  for (int i = 1; i <= 10; ++i)
    progress.saw(Seconds(2 * i), parse_log_line("step " + std::to_string(10 * i) + "/1000 loss 2.5"));
  EXPECT_EQ(progress.step(), 100);
  EXPECT_EQ(progress.loss(), 2.5);
  EXPECT_EQ(progress.total(), 1000);
  ASSERT_TRUE(progress.end());
  EXPECT_DOUBLE_EQ(progress.end()->count(), 200);
}

TEST(TalkedProgress, WhatIsGivenWinsOverWhatTheOutputSays) {
  TalkedProgress progress(500);
  for (int i = 1; i <= 10; ++i)
    progress.saw(Seconds(2 * i), parse_log_line("step " + std::to_string(10 * i) + "/1000"));
  EXPECT_DOUBLE_EQ(progress.end()->count(), 100);
}

TEST(TalkedProgress, AStepToldTwiceCountsOnceAndARestartBeginsAnew) {
  TalkedProgress progress(1000);
  for (int i = 1; i <= 10; ++i) {
    progress.saw(Seconds(2 * i), {.step = 10.0 * i});
    progress.saw(Seconds(2 * i + 1), {.step = 10.0 * i});
  }
  EXPECT_DOUBLE_EQ(*progress.steps_per_s(), 5);
  progress.restarted();
  EXPECT_FALSE(progress.end());
  progress.saw(Seconds(40), {.step = 50});
  EXPECT_EQ(progress.step(), 50);
}

}  // namespace
}  // namespace mayfly
