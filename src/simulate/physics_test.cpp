#include "simulate/physics.h"

#include <gtest/gtest.h>

#include <bit>

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
  Physics physics(PolicyName policy) const { return {policy, shapes, costs, profile.pipeline->global_batch, {}}; }
};

// 8 x 2 -> 6 x 2 after the loss of four of 16, the last checkpoint 5 minutes old.
TEST(Physics, OnlyCheckpointPoliciesThrowFiveMinutesAway) {
  const Bert bert;
  const int from = *bert.shapes.find({8, 2});
  const int to = *bert.shapes.find({6, 2});
  const auto lost = [&](PolicyName policy) {
    return bert.physics(policy).change(16, from, 4, 0, to, Seconds(0), Seconds(300)).work_lost.count();
  };
  EXPECT_EQ(lost(PolicyName::checkpoint), 300);
  EXPECT_GT(lost(PolicyName::redundant), 0);
  EXPECT_LT(lost(PolicyName::redundant), 300);  // neighbours survive now and then
  for (const PolicyName policy : {PolicyName::reactive, PolicyName::persist, PolicyName::liveput, PolicyName::ideal})
    EXPECT_EQ(lost(policy), 0) << name(policy);
}

TEST(Physics, IdealChangesCostNothingAndEveryOtherPolicyPausesForALoss) {
  const Bert bert;
  const int from = *bert.shapes.find({8, 2});
  const int to = *bert.shapes.find({6, 2});
  for (const std::string& word : policy_names()) {
    const PolicyName policy = *policy_named(word);
    const Seconds pause = bert.physics(policy).change(16, from, 4, 0, to, Seconds(0), Seconds(300)).pause;
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
  const int from = *bert.shapes.find({8, 2});
  const int to = *bert.shapes.find({6, 2});
  for (const PolicyName policy : {PolicyName::reactive, PolicyName::persist}) {
    const Physics physics = bert.physics(policy);
    const Seconds alone = physics.change(16, from, 4, 0, to, Seconds(0), Seconds(0)).pause;
    const Seconds after = physics.change(16, from, 4, 0, to, Seconds(10), Seconds(0)).pause;
    EXPECT_GT(after, alone) << name(policy);
  }
}

// 15 % of a step is the neighbour's work.
TEST(Physics, RedundancyCostsItsShareOfTheSpeed) {
  const Bert bert;
  const int shape = *bert.shapes.find({8, 2});
  EXPECT_DOUBLE_EQ(bert.physics(PolicyName::redundant).speed(shape, 16), 0.85 * bert.shapes.speed(shape));
  EXPECT_DOUBLE_EQ(bert.physics(PolicyName::reactive).speed(shape, 16), bert.shapes.speed(shape));
}

}  // namespace
}  // namespace mayfly
