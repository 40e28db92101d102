#include "report/trail.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace mayfly {
namespace {

TEST(Trail, KeepsEveryPointWhileThereIsRoom) {
  Trail trail(4);
  for (int i = 0; i < 4; ++i) trail.add(i, i * i);
  EXPECT_EQ(trail.times(), (std::vector<double>{0, 1, 2, 3}));
  EXPECT_EQ(trail.values(), (std::vector<double>{0, 1, 4, 9}));
}

TEST(Trail, StaysBoundedAndKeepsItsEndsAndItsShape) {
  Trail trail(100);
  for (int i = 0; i <= 100'000; ++i) trail.add(i, 2.0 * i);
  EXPECT_LE(trail.times().size(), 100u);
  EXPECT_GE(trail.times().size(), 25u);
  EXPECT_EQ(trail.times().front(), 0);
  EXPECT_EQ(trail.times().back(), 100'000);
  for (std::size_t i = 0; i < trail.times().size(); ++i) EXPECT_EQ(trail.values()[i], 2 * trail.times()[i]);
}

// 100 rises of 100 s, each followed by a fall to 0: 10,100 points, of which the 200 turns are kept.
TEST(Trail, KeepsTheTurnsThatThereIsRoomFor) {
  Trail trail(500);
  for (int i = 0; i < 100; ++i) {
    for (int t = 0; t < 100; ++t) trail.add(100 * i + t, t);
    trail.add(100 * i + 99.5, 0);
  }
  EXPECT_LE(trail.times().size(), 500u);
  const auto falls = std::count(trail.values().begin(), trail.values().end(), 0.0);
  EXPECT_GE(falls, 100);
  EXPECT_GE(std::count(trail.values().begin(), trail.values().end(), 99.0), 99);
}

TEST(Stairs, HoldsAValueUntilTheNext) {
  Stairs stairs;
  stairs.add(0, {1});
  stairs.add(5, {1});
  stairs.add(7, {1, 2});
  EXPECT_EQ(stairs.times(), (std::vector<double>{0, 7}));
  EXPECT_EQ(stairs.at(0, 1), 0) << "what an earlier row lacks was 0";
  EXPECT_EQ(stairs.at(1, 1), 2);
}

TEST(Stairs, OfStepsAtOneTimeTheLastStays) {
  Stairs stairs;
  stairs.add(0, {0});
  stairs.add(3, {1});
  stairs.add(3, {2});
  EXPECT_EQ(stairs.times(), (std::vector<double>{0, 3}));
  EXPECT_EQ(stairs.at(1, 0), 2);
}

TEST(Stairs, StaysBoundedAndEndsWithTheLastRow) {
  Stairs stairs(50);
  for (int i = 0; i <= 10'000; ++i) stairs.add(i, {static_cast<double>(i)});
  EXPECT_LE(stairs.times().size(), 50u);
  EXPECT_EQ(stairs.rows().back()[0], 10'000);
  EXPECT_TRUE(std::is_sorted(stairs.times().begin(), stairs.times().end()));
}

}  // namespace
}  // namespace mayfly
