#include "trace/trace.h"

#include <gtest/gtest.h>

namespace mayfly {
namespace {

/// 40 machines, of which one is exchanged every minute.
Series exchanged(int minutes) {
  Series series{.changes = {{.time = Seconds(0), .added = 40, .available = 40}}};
  for (int i = 1; i <= minutes; ++i)
    series.changes.push_back({.time = Seconds(60.0 * i), .added = 1, .removed = 1, .available = 40});
  return series;
}

int lost(const Series& series) {
  int sum = 0;
  for (const Change& change : series.changes) sum += change.removed;
  return sum;
}

// Half of the machines are held, so half of 100 losses are theirs.
TEST(Capped, LosesItsShareOfEachLoss) {
  const Series held = capped(exchanged(100), 20);
  EXPECT_EQ(lost(held), 50);
  for (const Change& change : held.changes) EXPECT_EQ(change.available, 20);
}

TEST(Capped, ChangesNothingWhereAllAreHeld) {
  const Series all = exchanged(10);
  EXPECT_EQ(capped(all, 40).changes, all.changes);
  EXPECT_EQ(capped(all, 100).changes, all.changes);
}

// 10 -> 4 machines with a cap of 6: at least 2 of those held must have gone.
TEST(Capped, NeverHoldsMoreThanThereAre) {
  const Series series{.changes = {{.time = Seconds(0), .added = 10, .available = 10},
                                  {.time = Seconds(60), .removed = 6, .available = 4}}};
  const Series held = capped(series, 6);
  ASSERT_EQ(held.changes.size(), 2U);
  EXPECT_EQ(held.changes[1].available, 4);
  EXPECT_EQ(held.changes[1].removed - held.changes[1].added, 2);
}

}  // namespace
}  // namespace mayfly
