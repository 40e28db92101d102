#include "run/unreached.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "base/rng.h"

namespace mayfly {
namespace {

double alike(WorkerId /*worker*/) { return 1; }

TEST(Unreached, WhoIsMissedByAllGoes) {
  Unreached pairs;
  EXPECT_TRUE(pairs.cheapest(alike).empty());
  for (const WorkerId other : {1, 2, 4}) pairs.add(other, 3);
  EXPECT_EQ(pairs.cheapest(alike), std::vector<WorkerId>{3});
  EXPECT_TRUE(pairs.reported(1));
  EXPECT_FALSE(pairs.reported(3));
  pairs.remove(3);
  EXPECT_TRUE(pairs.empty());
}

TEST(Unreached, OfTwoTheOneOfLessWorthGoes) {
  Unreached pairs;
  pairs.add(1, 2);
  EXPECT_EQ(pairs.cheapest([](WorkerId worker) { return worker == 1 ? 1.5 : 1; }), std::vector<WorkerId>{2});
  EXPECT_EQ(pairs.cheapest([](WorkerId worker) { return worker == 2 ? 1.5 : 1; }), std::vector<WorkerId>{1});
}

// Against all sets of ten members, drawn a hundred times.
TEST(Unreached, NoSmallerSetWouldDo) {
  Rng rng(1);
  for (int draw = 0; draw < 100; ++draw) {
    Unreached pairs;
    std::vector<std::pair<int, int>> drawn;
    for (int i = rng.below(14); i >= 0; --i) drawn.emplace_back(rng.below(10), rng.below(10));
    std::erase_if(drawn, [](const auto& pair) { return pair.first == pair.second; });
    for (const auto& [one, other] : drawn) pairs.add(one, other);
    const auto covers = [&](unsigned set) {
      return std::ranges::all_of(drawn,
                                 [&](const auto& pair) { return (set >> pair.first | set >> pair.second) & 1U; });
    };
    int least = 10;
    for (unsigned set = 0; set < 1024; ++set) {
      if (covers(set)) least = std::min(least, std::popcount(set));
    }
    unsigned chosen = 0;
    for (const WorkerId worker : pairs.cheapest(alike)) chosen |= 1U << worker;
    EXPECT_TRUE(covers(chosen));
    EXPECT_EQ(std::popcount(chosen), least);
  }
}

}  // namespace
}  // namespace mayfly
