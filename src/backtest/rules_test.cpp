#include "backtest/rules.h"

#include <gtest/gtest.h>

namespace mayfly {
namespace {

/// 1 USD/h on the market, 3 on demand; there until 5,000 s, gone until 9,000 s, there again.
Rental gap() {
  return {.market = {{0, true, 3600}, {5000, false, 3600}, {9000, true, 3600}},
          .on_demand_hourly = 3 * 3600,
          .end = 20'000};
}
constexpr RuleFigures kFigures{.restart = Seconds(100), .checkpoint_every = Seconds(600), .look = Seconds(50)};

// 5,000 s of training hold 8 checkpoints of 600 s: 200 s are lost. From 9,000 s: 100 s to start, then 6,000 - 4,800.
// Paid, at 1 USD a second: 5,000 + 1,300.
TEST(FixedRun, WaitsForTheWholeClusterAndGoesOnFromTheLastCheckpoint) {
  const RuleRun run = fixed_run(gap(), {.start = 0, .work = 6000, .deadline = 8000}, kFigures);
  EXPECT_TRUE(run.finished);
  EXPECT_NEAR(run.time, 10'300, 1e-9);
  EXPECT_NEAR(run.cost, 6300, 1e-9);
  EXPECT_EQ(run.restarts, 1);
}

TEST(FixedRun, IsNotFinishedWhereTheTraceEnds) {
  const RuleRun run = fixed_run(gap(), {.start = 6000, .work = 12'000, .deadline = 13'000}, kFigures);
  EXPECT_FALSE(run.finished);
  EXPECT_NEAR(run.time, 14'000, 1e-9);
  EXPECT_NEAR(run.cost, 11'000, 1e-9);
}

// 6,000 s by 8,000 s: 4,800 of them are left of what was done by 5,000 s, and the line asks no more until 6,400 s. On
// demand at 6,450 s, in training from 6,550 s: 1,200 of work, 200 and 50 are then all the time there is, so it stays
// there, though it is ahead of the line from 7,600 s on. Done at 7,750 s; paid 5,000 and 3 x 1,300.
TEST(UniformProgress, WaitsWhileAheadAndRentsForGoodWhenTheSlackIsGone) {
  Rental rental = gap();
  rental.market.pop_back();
  const RuleRun run = uniform_progress_run(rental, {.start = 0, .work = 6000, .deadline = 8000}, kFigures);
  EXPECT_TRUE(run.finished);
  EXPECT_NEAR(run.time, 7750, 1e-9);
  EXPECT_NEAR(run.cost, 5000 + 3 * 1300, 1e-6);
  EXPECT_EQ(run.restarts, 1);
}

// From 5,000 s nothing is there for 4,000 s; 1,000 s of work by 10,000 s, so the line asks 1 s in 10. At 50 s it asks
// 5: on demand, whose first start is free, until at 100 s 50 are done and the line of 200 s later asks 30. That is
// enough until 500 s; at 550 s on demand again, 100 s to start, 100 s done at 700 s where 90 are asked. So every 500 s:
// seven times 150 s for 50 s, 400 s done, until the market is there at 4,000 s: 100 s to start and 600 s of work.
TEST(UniformProgress, KeepsToTheLineUntilTheMarketIsThere) {
  const RuleRun run = uniform_progress_run(gap(), {.start = 5000, .work = 1000, .deadline = 10'000}, kFigures);
  EXPECT_TRUE(run.finished);
  EXPECT_NEAR(run.time, 4700, 1e-9);
  EXPECT_EQ(run.restarts, 8);
  EXPECT_NEAR(run.cost, 3 * (50 + 7 * 150) + 700, 1e-6);
}

// Two of one type and one of another, and one on demand; three and one come at 10 s, one of the two goes at 20 s.
TEST(Rental, IsWholeWhenEveryLineHasItsMachines) {
  const Scene scene{.supplies = {{.changes = {{.time = Seconds(10), .added = 2, .available = 2},
                                              {.time = Seconds(20), .removed = 1, .available = 1}},
                                  .lines = {{.most = 2, .price = {1}, .prices = {{Seconds(15), {2}}}}}},
                                 {.changes = {{.time = Seconds(0), .added = 1, .available = 1}},
                                  .lines = {{.most = 1, .price = {5}}}}},
                    .rented = {{.price = {10}, .count = 1}},
                    .standing = {100},
                    .duration = Seconds(30)};
  const Rental rental = rental_of(scene, {50});
  ASSERT_EQ(rental.market.size(), 4U);
  const auto is = [&](std::size_t i, double time, bool whole, double hourly) {
    EXPECT_EQ(rental.market[i].time, time);
    EXPECT_EQ(rental.market[i].whole, whole);
    EXPECT_EQ(rental.market[i].hourly, hourly);
  };
  is(0, 0, false, 117);
  is(1, 10, true, 117);
  is(2, 15, true, 119);
  is(3, 20, false, 119);
}

}  // namespace
}  // namespace mayfly
