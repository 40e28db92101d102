#include "simulate/past.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/problems.h"

namespace mayfly {
namespace {

/// A job an hour, at 1 USD an hour, for as long.
Course hourly(double end) { return Course({{}, {end, end / 3600, end / 3600}}); }

// A fifth of the work is missing at the end of each window of the past, and now looks like them. Windows of 2 h begin
// every 10 min, from 0 to 8 h of 10: 49, worth 1 + 4 side by side, but for the first, which had nothing before it to
// look like now. With all of them alike, and everything staying as it is, there are 7 - 5 / 49 opinions that say no. Of
// the opinion of all alike 1 / (5 + 1) is Jeffreys': half of that says yes.
TEST(Past, OfFewWindowsNothingIsCertain) {
  const RiskQuestion question{.work = 2.5, .deadline = Seconds(7200), .planned = Seconds(7000)};
  const Course course = hourly(72'000);
  EXPECT_NEAR(Past(course, question).in_time(Seconds(36'000)), 1 / 12.0 / (7 - 5 / 49.0), 1e-9);
  const RiskQuestion easy{.work = 1.9, .deadline = Seconds(7200), .planned = Seconds(7000)};
  EXPECT_NEAR(Past(course, easy).in_time(Seconds(36'000)), 1 - 1 / 12.0 / (7 - 5 / 49.0), 1e-9);
}

// Without a machine of the market the job would be done, too: there is nothing that could happen.
TEST(Past, WhatNeedsNoMarketIsAsSureAsItsPrediction) {
  const RiskQuestion question{.deadline = Seconds(3600 * std::exp(0.1)),
                              .planned = Seconds(3600),
                              .relative_sd = 0.1,
                              .least_pace = 1 / 3600.0};
  const Course course = hourly(1e6);
  // Deadline = planned time * e^sd: one deviation above the middle.
  EXPECT_NEAR(Past(course, question).in_time(Seconds(1e5)), 0.841345, 1e-6);
  EXPECT_NEAR(*Past(course, question).cost_p50(Seconds(1e5)), 1, 1e-9);
}

// Until 50 h every hour does a job, afterwards none does or every one does two: at 50 h nobody can tell.
TEST(Past, KnowsNothingOfWhatComes) {
  const double now = 180'000;
  const Course stops({{}, {now, 50, 50}, {2 * now, 50, 60}});
  const Course speeds_up({{}, {now, 50, 50}, {2 * now, 150, 200}});
  const RiskQuestion question{.work = 3.5, .deadline = Seconds(14'400), .planned = Seconds(12'600), .relative_sd = 0.1};
  const Past one(stops, question), other(speeds_up, question);
  for (const double at : {0.0, 14'400.0, 30'000.0, 100'000.0, now}) {
    EXPECT_EQ(one.in_time(Seconds(at)), other.in_time(Seconds(at)));
    EXPECT_EQ(one.cost_p50(Seconds(at)), other.cost_p50(Seconds(at)));
    EXPECT_EQ(one.time_p50(Seconds(at)), other.time_p50(Seconds(at)));
  }
  EXPECT_NE(one.in_time(Seconds(1.5 * now)), other.in_time(Seconds(1.5 * now)));
}

// Half the past does a job an hour, the other half none: half of the jobs never end, so the middle one has no cost and
// no time.
TEST(Past, JobsThatWereNotSeenToEndHaveNoCost) {
  const Course course({{}, {36'000, 10, 10}, {360'000, 10, 20}});
  const RiskQuestion question{.deadline = Seconds(7200), .planned = Seconds(3600)};
  EXPECT_FALSE(Past(course, question).cost_p50(Seconds(200'000)));
  EXPECT_FALSE(Past(course, question).time_p50(Seconds(200'000)));
  EXPECT_NEAR(*Past(course, question).cost_p50(Seconds(30'000)), 1, 1e-9);
  EXPECT_NEAR(*Past(course, question).time_p50(Seconds(30'000)), 3600, 1e-6);
}

}  // namespace
}  // namespace mayfly
