#include "run/roster.h"

#include <gtest/gtest.h>

namespace mayfly {
namespace {

TEST(Roster, NeverGivesANameTwice) {
  Roster roster;
  EXPECT_EQ(roster.admit({}), 1);
  roster.remove(1);
  EXPECT_EQ(roster.admit({}), 2);
  // An earlier process has named 7, and one of its workers, 4, is still there.
  Roster later;
  later.restore(4, {.joined = true});
  later.named_until(7);
  EXPECT_EQ(later.admit({}), 8);
  EXPECT_TRUE(later.find(4)->joined);
}

// The line of worker 1 is there, and its last word 4 s old; that of 2 broke 1 s ago, after a silence of 9 s; 3 is of an
// earlier process and has not said anything to this one.
TEST(Roster, SilenceRunsFromTheLastWordOrFromTheEndOfTheLine) {
  Roster roster;
  roster.restore(1, {.heard = Seconds(6)});
  roster.restore(2, {.heard = Seconds(0), .closed = Seconds(9)});
  roster.restore(3, {});
  EXPECT_EQ(roster.silent(Seconds(10), Seconds(2)), (std::vector<WorkerId>{1}));
  EXPECT_EQ(roster.silent(Seconds(12), Seconds(2)), (std::vector<WorkerId>{1, 2}));
}

TEST(Roster, ForgetsOnlyNamesThatWereNeverReady) {
  Roster roster;
  const WorkerId lost = roster.admit({.launch = 5});
  const WorkerId works = roster.admit({.launch = 5, .ready = true});
  const WorkerId other = roster.admit({.launch = 6});
  EXPECT_EQ(roster.forget_unready(5), (std::vector<WorkerId>{lost}));
  EXPECT_EQ(roster.find(lost), nullptr);
  EXPECT_EQ(roster.of_launch(5), works);
  EXPECT_EQ(roster.of_launch(6), other);
  EXPECT_EQ(roster.of_launch(7), 0);
}

TEST(Roster, NeighboursAreThoseWithACache) {
  Roster roster;
  roster.restore(1, {.cache = "10.0.0.1:7"});
  roster.restore(2, {.noted_cache = "10.0.0.2:7"});  // not back yet
  roster.restore(3, {.cache = "10.0.0.3:7"});
  const Neighbours neighbours = roster.neighbours();
  EXPECT_EQ(neighbours.workers, (std::vector<int>{1, 3}));
  EXPECT_EQ(neighbours.addresses, (std::vector<std::string>{"10.0.0.1:7", "10.0.0.3:7"}));
}

}  // namespace
}  // namespace mayfly
