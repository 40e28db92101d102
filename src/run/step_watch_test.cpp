#include "run/step_watch.h"

#include <gtest/gtest.h>

namespace mayfly {
namespace {

using Workers = std::vector<WorkerId>;
constexpr StepWatch::Options kOptions{.first = Seconds(100), .floor = Seconds(10), .times = 20};

// Steps of 0.1 s: 20 times that is less than the floor. One of 2 s: 40 s, as long as it is among the last fifty.
TEST(StepWatch, TheLimitFollowsTheSlowestOfTheLastSteps) {
  StepWatch watch(kOptions);
  EXPECT_EQ(watch.limit(), Seconds(100));
  const auto step = [&](Seconds length) {
    watch.given(Seconds(0), 1, {1, 0});
    watch.done(length, 1, {1, 0});
  };
  step(Seconds(0.1));
  EXPECT_EQ(watch.limit(), Seconds(10));
  step(Seconds(2));
  EXPECT_EQ(watch.limit(), Seconds(40));
  for (int i = 0; i < 50; ++i) step(Seconds(0.1));
  EXPECT_EQ(watch.limit(), Seconds(10));
}

TEST(StepWatch, WhoHoldsUpTheOthersExplainsItselfAndIsLost) {
  StepWatch watch(kOptions);
  for (const WorkerId worker : {1, 2}) watch.given(Seconds(0), worker, {1, 0});
  watch.heard(1, "exchange");
  watch.heard(2, "compute");
  EXPECT_EQ(watch.look(Seconds(100)), StepWatch::Findings{});
  EXPECT_EQ(watch.look(Seconds(101)).explain, Workers{2});
  EXPECT_EQ(watch.look(Seconds(101.5)), StepWatch::Findings{});
  EXPECT_EQ(watch.story(Seconds(101), 2), "at its step for 1m41s (compute), where 1m40s is the limit");
  EXPECT_EQ(watch.look(Seconds(103)).lose, Workers{2});
  EXPECT_EQ(watch.busy(), Workers{2});
  watch.drop(2);
  EXPECT_EQ(watch.busy(), Workers{});
}

// No heartbeat has said where 1 is: it is not known to wait.
TEST(StepWatch, WhoDoesNotSayWhereItIsIsNotExcused) {
  StepWatch watch(kOptions);
  watch.given(Seconds(0), 1, {1, 0});
  EXPECT_EQ(watch.look(Seconds(101)).explain, Workers{1});
}

TEST(StepWatch, WhereAllWaitForEachOtherNoneIsAtFault) {
  StepWatch watch(kOptions);
  for (const WorkerId worker : {1, 2}) {
    watch.given(Seconds(0), worker, {1, 0});
    watch.heard(worker, "exchange");
  }
  EXPECT_EQ(watch.look(Seconds(101)), (StepWatch::Findings{.stuck = true}));
  EXPECT_EQ(watch.look(Seconds(102)), StepWatch::Findings{});  // said once
  EXPECT_TRUE(watch.look(Seconds(202)).stuck);                 // and again as late
}

TEST(StepWatch, WhoGetsOnIsNotLate) {
  StepWatch watch(kOptions);
  watch.given(Seconds(0), 1, {1, 0});
  watch.given(Seconds(99), 1, {1, 0});
  EXPECT_EQ(watch.look(Seconds(150)), StepWatch::Findings{});
  watch.done(Seconds(150), 1, {1, 0});
  EXPECT_EQ(watch.look(Seconds(900)), StepWatch::Findings{});
}

}  // namespace
}  // namespace mayfly
