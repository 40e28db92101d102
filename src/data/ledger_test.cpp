#include "data/ledger.h"

#include <gtest/gtest.h>

#include <map>

#include "base/rng.h"

namespace mayfly {
namespace {

TEST(Ledger, LeasesFollowOneAnother) {
  Ledger ledger;
  EXPECT_EQ(ledger.lease(64, 100), (SampleRange{0, 64}));
  EXPECT_EQ(ledger.lease(64, 100), (SampleRange{64, 36}));
  EXPECT_EQ(ledger.lease(64, 100).count, 0);
  EXPECT_EQ(ledger.samples(), 0);
}

TEST(Ledger, CommitsOnceAndOnlyWhatIsLeased) {
  Ledger ledger;
  const SampleRange range = ledger.lease(10, 100);
  EXPECT_FALSE(ledger.commit({0, 9}));
  EXPECT_FALSE(ledger.commit({1, 10}));
  EXPECT_TRUE(ledger.commit(range));
  EXPECT_FALSE(ledger.commit(range));
  EXPECT_FALSE(ledger.give_back(range));
  EXPECT_EQ(ledger.committed(), (std::vector<SampleRange>{{0, 10}}));
  EXPECT_EQ(ledger.frontier(), 10);
}

TEST(Ledger, WhatIsGivenBackIsLeasedNext) {
  Ledger ledger;
  const SampleRange first = ledger.lease(10, 100);
  const SampleRange second = ledger.lease(10, 100);
  EXPECT_TRUE(ledger.commit(second));
  EXPECT_EQ(ledger.frontier(), 0);
  EXPECT_TRUE(ledger.give_back(first));
  // The gap before the committed range is nearer than the 64 asked for.
  EXPECT_EQ(ledger.lease(64, 100), (SampleRange{0, 10}));
  EXPECT_EQ(ledger.lease(64, 100), (SampleRange{20, 64}));
}

TEST(Ledger, CommittedRangesThatTouchBecomeOne) {
  Ledger ledger;
  const SampleRange a = ledger.lease(5, 100);
  const SampleRange b = ledger.lease(5, 100);
  const SampleRange c = ledger.lease(5, 100);
  EXPECT_TRUE(ledger.commit(a));
  EXPECT_TRUE(ledger.commit(c));
  EXPECT_EQ(ledger.committed(), (std::vector<SampleRange>{{0, 5}, {10, 5}}));
  EXPECT_TRUE(ledger.commit(b));
  EXPECT_EQ(ledger.committed(), (std::vector<SampleRange>{{0, 15}}));
}

TEST(Ledger, ComesBackFromACheckpoint) {
  auto ledger = Ledger::restored({{0, 5}, {10, 5}});
  ASSERT_TRUE(ledger);
  EXPECT_EQ(ledger->samples(), 10);
  EXPECT_EQ(ledger->frontier(), 5);
  EXPECT_EQ(ledger->lease(64, 100), (SampleRange{5, 5}));
}

TEST(Ledger, RefusesRangesThatAreNoLedger) {
  const auto refused = [](std::vector<SampleRange> ranges) { return !Ledger::restored(std::move(ranges)); };
  EXPECT_TRUE(refused({{0, 0}}));
  EXPECT_TRUE(refused({{0, -1}}));
  EXPECT_TRUE(refused({{-1, 2}}));
  EXPECT_TRUE(refused({{5, 5}, {0, 2}}));
  EXPECT_TRUE(refused({{0, 5}, {4, 2}}));
  EXPECT_TRUE(refused({{0, 5}, {5, 2}}));  // one range, written as two
  EXPECT_TRUE(refused({{std::int64_t{1} << 62, std::int64_t{3} << 61}}));
  EXPECT_FALSE(refused({}));
}

// Whatever is leased, lost and committed in which order, a sample is committed once, and in the end all are.
TEST(Ledger, EverySampleIsCommittedOnceInAnyWeather) {
  constexpr std::int64_t kEnd = 500;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Rng rng(seed);
    Ledger ledger;
    std::map<std::int64_t, int> times;
    while (ledger.samples() < kEnd) {
      const SampleRange range = ledger.lease(1 + rng.below(40), kEnd);
      for (std::int64_t place = range.first; place < range.end(); ++place) ASSERT_EQ(times.count(place), 0U);
      if (rng.chance(0.02)) ledger.give_back_all();
      if (ledger.leased().empty()) continue;
      const SampleRange any = ledger.leased()[rng.below(static_cast<int>(ledger.leased().size()))];
      if (rng.chance(0.4)) {
        ASSERT_TRUE(ledger.give_back(any));
      } else if (rng.chance(0.7)) {
        ASSERT_TRUE(ledger.commit(any));
        for (std::int64_t place = any.first; place < any.end(); ++place) ASSERT_EQ(++times[place], 1);
      }
    }
    EXPECT_EQ(times.size(), std::size_t{kEnd});
    EXPECT_EQ(ledger.committed(), (std::vector<SampleRange>{{0, kEnd}}));
  }
}

}  // namespace
}  // namespace mayfly
