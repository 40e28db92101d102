#include "train/lane.h"

#include <gtest/gtest.h>

#include "train/coverage.h"
#include "train/throttle.h"

namespace mayfly {
namespace {

using Clock = Lane::Clock;
using std::chrono::milliseconds;

// 100 MB/s: 1 MB takes 10 ms. After a pause 5 ms worth pass at once.
TEST(Lane, WhatIsAskedForPassesOneBehindTheOther) {
  Lane lane(megabytes_per_second(100));
  const Clock::time_point start{std::chrono::seconds(1000)};
  EXPECT_EQ(lane.passage(1'000'000, start), start + milliseconds(10 - 5));
  // Another connection asks at the same moment: it waits for both.
  EXPECT_EQ(lane.passage(2'000'000, start), start + milliseconds(30 - 5));
  // Who comes when the link is free pays for its own bytes alone, less the burst; what was not used before is lost.
  const auto later = start + std::chrono::seconds(1);
  EXPECT_EQ(lane.passage(1'000'000, later), later + milliseconds(10 - 5));
}

// 1 MB/s: a chunk takes 65.536 ms, which is more than 5 ms, so that is the burst.
TEST(Lane, AtALowRateTheBurstIsAChunk) {
  Lane lane(megabytes_per_second(1));
  const Clock::time_point start{std::chrono::seconds(1000)};
  EXPECT_EQ(lane.passage(Lane::kChunk, start), start);
  EXPECT_EQ(lane.passage(Lane::kChunk, start), start + std::chrono::microseconds(65536));
}

// 4 workers: each sends 2 * 3/4 of 100 MB, which is 150 MB, at 50 MB/s.
TEST(RingTime, GrowsWithTheBytesThatEveryoneSends) {
  EXPECT_DOUBLE_EQ(ring_time(megabytes(100), 4, megabytes_per_second(50)).count(), 3);
  EXPECT_DOUBLE_EQ(ring_time(megabytes(100), 1, megabytes_per_second(50)).count(), 0);
}

// 2 s of a core at 0.4 of it are 5 s; 3 of them have passed.
TEST(Throttle, StretchesWorkToTheShareOfACore) {
  EXPECT_DOUBLE_EQ(rest_time(Seconds(2), Seconds(3), 0.4).count(), 2);
  EXPECT_DOUBLE_EQ(rest_time(Seconds(2), Seconds(6), 0.4).count(), 0);
  EXPECT_DOUBLE_EQ(rest_time(Seconds(2), Seconds(2), 1).count(), 0);
}

TEST(Coverage, KnowsWhatIsMissingAndRefusesWhatIsDoneOrOutside) {
  Coverage coverage({.first = 10, .count = 10});
  EXPECT_TRUE(coverage.add({.first = 18, .count = 2}));
  EXPECT_TRUE(coverage.add({.first = 12, .count = 3}));
  EXPECT_FALSE(coverage.add({.first = 14, .count = 2}));
  EXPECT_FALSE(coverage.add({.first = 9, .count = 2}));
  EXPECT_FALSE(coverage.add({.first = 17, .count = 2}));
  EXPECT_FALSE(coverage.add({.first = 15, .count = SIZE_MAX}));
  EXPECT_EQ(coverage.missing(), (std::vector<ShardRange>{{10, 2}, {15, 3}}));
  EXPECT_FALSE(coverage.complete());
  EXPECT_TRUE(coverage.add({.first = 15, .count = 3}));
  EXPECT_TRUE(coverage.add({.first = 10, .count = 2}));
  EXPECT_TRUE(coverage.complete());
  EXPECT_TRUE(coverage.missing().empty());
}

}  // namespace
}  // namespace mayfly
