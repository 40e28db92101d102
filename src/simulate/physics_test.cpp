#include "simulate/physics.h"

#include <gtest/gtest.h>

#include <bit>

#include "control/policy.h"
#include "support/problems.h"

namespace mayfly {
namespace {

/// Of all sets of `hit` machines of the grid, the share without two neighbours in one ring, by trying each.
double brute_force(Shape grid, int hit) {
  int sets = 0;
  int fine = 0;
  for (unsigned lost = 0; lost < 1U << grid.machines(); ++lost) {
    if (std::popcount(lost) != hit) continue;
    ++sets;
    bool neighbours = false;
    for (int machine = 0; machine < grid.machines(); ++machine) {
      const int pipeline = machine / grid.stages;
      const int next = pipeline * grid.stages + (machine + 1) % grid.stages;
      neighbours |= next != machine && (lost >> machine & 1) != 0 && (lost >> next & 1) != 0;
    }
    fine += neighbours ? 0 : 1;
  }
  return static_cast<double>(fine) / sets;
}

TEST(NoNeighboursLost, IsTheShareOfAllSets) {
  for (const Shape grid : {Shape{1, 1}, {3, 1}, {1, 2}, {3, 2}, {1, 3}, {2, 3}, {1, 5}, {2, 5}, {3, 4}, {1, 9}}) {
    for (int hit = 0; hit <= grid.machines(); ++hit)
      EXPECT_NEAR(no_neighbours_lost(grid, hit), brute_force(grid, hit), 1e-12)
          << grid.data_parallel << "x" << grid.stages << ", " << hit;
  }
}

struct Bert {
  Profile profile = support::shipped_profile("parcae-bert");
  Shapes shapes = *pipeline_shapes(profile);
  MigrationCosts costs = *MigrationCosts::make(profile, shapes);
  Physics physics{shapes, costs, profile.pipeline->global_batch, {}};

  /// 8 x 2 -> 6 x 2 after the loss of four of 16.
  Outage shrink(Mechanism mechanism, Seconds pending, Seconds since_checkpoint) const {
    const Assign command{.shape = {6, 2}, .machines_before = 16, .lost = 4, .mechanism = mechanism};
    return physics.change(command,
                          {.from = shapes.find({8, 2}), .pending = pending, .since_checkpoint = since_checkpoint});
  }
};

// The last checkpoint is 5 minutes old.
TEST(Physics, OnlyARewindThrowsFiveMinutesAway) {
  const Bert bert;
  const auto lost = [&](Mechanism mechanism) {
    return bert.shrink(mechanism, Seconds(0), Seconds(300)).work_lost.count();
  };
  EXPECT_EQ(lost(Mechanism::rewind), 300);
  EXPECT_GT(lost(Mechanism::shadow), 0);
  EXPECT_LT(lost(Mechanism::shadow), 300);  // neighbours survive now and then
  for (const Mechanism mechanism : {Mechanism::reload, Mechanism::migrate, Mechanism::free})
    EXPECT_EQ(lost(mechanism), 0) << static_cast<int>(mechanism);
}

TEST(Physics, IdealChangesCostNothingAndEveryOtherPolicyPausesForALoss) {
  const Bert bert;
  for (const std::string& word : policy_names()) {
    const PolicyName policy = *policy_named(word);
    const Seconds pause = bert.shrink(mechanism(policy), Seconds(0), Seconds(300)).pause;
    if (policy == PolicyName::ideal) {
      EXPECT_EQ(pause.count(), 0);
    } else {
      EXPECT_GT(pause.count(), 0) << word;
    }
  }
}

// A change that is interrupted by another costs a restart on top: never less than alone.
TEST(Physics, ChangesUnderWayMakeTheNextOneDearer) {
  const Bert bert;
  for (const Mechanism mechanism : {Mechanism::reload, Mechanism::migrate}) {
    const Seconds alone = bert.shrink(mechanism, Seconds(0), Seconds(0)).pause;
    const Seconds after = bert.shrink(mechanism, Seconds(10), Seconds(0)).pause;
    EXPECT_GT(after, alone) << static_cast<int>(mechanism);
  }
}

// 15 % of a step is the neighbour's work.
TEST(Physics, RedundancyCostsItsShareOfTheSpeed) {
  const Bert bert;
  const int shape = *bert.shapes.find({8, 2});
  EXPECT_DOUBLE_EQ(bert.physics.speed(Mechanism::shadow, shape, 16), 0.85 * bert.shapes.speed(shape));
  EXPECT_DOUBLE_EQ(bert.physics.speed(Mechanism::reload, shape, 16), bert.shapes.speed(shape));
}

}  // namespace
}  // namespace mayfly
