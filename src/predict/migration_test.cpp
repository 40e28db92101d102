#include "predict/migration.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

#include "base/rng.h"
#include "support/pipelines.h"
#include "support/problems.h"

namespace mayfly {
namespace {

Shapes shapes_of(std::vector<Shape> shapes) {
  std::vector<double> speeds(shapes.size(), 1.0);
  return {std::move(shapes), std::move(speeds)};
}
MigrationCosts costs_of(const Profile& profile, const Shapes& shapes, MigrationOptions options = {}) {
  auto costs = MigrationCosts::make(profile, shapes, options);
  EXPECT_TRUE(costs) << (costs ? "" : costs.error().message);
  return *std::move(costs);
}
/// Milliseconds of `machines from -> to` after `lost`, as the reference values have it.
double ms(const MigrationCosts& costs, const Shapes& shapes, int machines, Shape from, int lost, Shape to) {
  const auto row = from.machines() == 0 ? std::nullopt : shapes.find(from);
  return 1000 * costs.expected(machines, row, lost, *shapes.find(to)).count();
}

/// How often each number of losses by stage occurs among all sets of `lost` of `machines`.
std::map<std::vector<int>, double> victims(int machines, Shape grid, int lost) {
  std::map<std::vector<int>, double> sets;
  for (unsigned set = 0; set < 1U << machines; ++set) {
    if (__builtin_popcount(set) != lost) continue;
    std::vector<int> by_stage(static_cast<std::size_t>(grid.stages));
    for (int n = 0; n < grid.machines(); ++n) by_stage[static_cast<std::size_t>(n % grid.stages)] += (set >> n) & 1U;
    sets[by_stage] += 1;
  }
  double all = 0;
  for (const auto& [by_stage, count] : sets) all += count;
  for (auto& [by_stage, count] : sets) count /= all;
  return sets;
}
/// One set drawn at random.
std::vector<int> drawn(Rng& rng, int machines, Shape grid, int lost) {
  std::vector<int> machine(static_cast<std::size_t>(machines));
  std::iota(machine.begin(), machine.end(), 0);
  std::vector<int> by_stage(static_cast<std::size_t>(grid.stages));
  for (int k = 0; k < lost; ++k) {
    std::swap(machine[static_cast<std::size_t>(k)], machine[static_cast<std::size_t>(k + rng.below(machines - k))]);
    const int victim = machine[static_cast<std::size_t>(k)];
    if (victim < grid.machines()) by_stage[static_cast<std::size_t>(victim % grid.stages)] += 1;
  }
  return by_stage;
}
struct Sampled {
  double mean = 0;
  double error = 0;  ///< standard, of the mean
};
Sampled sampled(const MigrationCosts& costs, const Shapes& shapes, int machines, Shape from, int lost, Shape to) {
  constexpr int kDraws = 10'000;
  Rng rng(static_cast<std::uint64_t>(machines * 1000 + lost));
  double sum = 0;
  double squares = 0;
  for (int draw = 0; draw < kDraws; ++draw) {
    const double cost =
        costs.outcome(machines, *shapes.find(from), lost, drawn(rng, machines, from, lost), *shapes.find(to)).count();
    sum += cost;
    squares += cost * cost;
  }
  const double mean = sum / kDraws;
  return {mean, std::sqrt(std::max(0.0, squares / kDraws - mean * mean) / kDraws)};
}

/// Pr[every stage keeps at least `keep` machines] when `lost` of `machines` go at random, those outside the grid being
/// spares. docs/models.md#liveput
double survival_probability(int machines, Shape grid, int keep, int lost) {
  // Stage after stage: chance that so many losses are left for the stages to come, none so far having lost too many.
  const int width = grid.data_parallel;
  std::vector<double> left(static_cast<std::size_t>(lost) + 1, 0);
  left[static_cast<std::size_t>(lost)] = 1;
  int rest = machines;
  for (int stage = 0; stage < grid.stages; ++stage, rest -= width) {
    std::vector<double> next(left.size(), 0);
    for (int l = 0; l <= lost; ++l) {
      if (left[static_cast<std::size_t>(l)] == 0) continue;
      for (int hit = 0; hit <= std::min(l, width - keep); ++hit)
        next[static_cast<std::size_t>(l - hit)] +=
            left[static_cast<std::size_t>(l)] * hit_probability(rest, width, l, hit);
    }
    left = std::move(next);
  }
  return std::accumulate(left.begin(), left.end(), 0.0);
}

// 12 machines in 3 x 4, two lost: both in one stage in 4 x C(3,2) = 12 of 66 ways, so 54/66 keep two pipelines.
TEST(SurvivalProbability, MatchesKnownValues) {
  const struct {
    int machines;
    Shape grid;
    int keep, lost;
    double probability;
  } known[] = {{12, {3, 4}, 2, 2, 0.8181818}, {14, {3, 4}, 2, 3, 0.6263736}, {16, {4, 4}, 3, 4, 0.1406593},
               {18, {2, 9}, 1, 4, 0.6588235}, {32, {4, 8}, 3, 2, 0.903226},  {32, {4, 8}, 3, 4, 0.498331},
               {32, {2, 13}, 2, 1, 0.1875},   {32, {2, 13}, 2, 4, 0.000417}, {32, {2, 13}, 1, 4, 0.844911},
               {30, {3, 10}, 2, 3, 0.7980296}};
  for (const auto& row : known)
    EXPECT_NEAR(survival_probability(row.machines, row.grid, row.keep, row.lost), row.probability, 5e-7)
        << row.machines << " " << row.grid.data_parallel << "x" << row.grid.stages;
}
// Beyond the triangle of binomials, logarithms: the two must meet. 600 machines, 300 inside, 2 lost: both inside in
// 300 x 299 of 600 x 599 ways.
TEST(HitProbability, HoldsForManyMachines) {
  EXPECT_NEAR(hit_probability(600, 300, 2, 2), 300.0 * 299 / (600.0 * 599), 1e-12);
  EXPECT_EQ(hit_probability(4, 2, 3, 0), 0);
}

// Spare parts of the cut: 50 layers in 8 stages are 1 + 49 = 1 + 8 x 6 + 1, the first stage and the last but one
// take 7.
TEST(StageCuts, LeaveTheRestToTheStagesBeforeTheLast) {
  EXPECT_EQ(stage_cuts(50, 7), (std::vector<int>{0, 8, 15, 22, 29, 36, 43, 50}));
  EXPECT_EQ(stage_cuts(50, 8), (std::vector<int>{0, 7, 13, 19, 25, 31, 37, 44, 50}));
  EXPECT_EQ(stage_cuts(50, 9), (std::vector<int>{0, 6, 11, 16, 21, 27, 33, 39, 45, 50}));
  EXPECT_EQ(stage_cuts(50, 13), (std::vector<int>{0, 4, 7, 11, 15, 19, 23, 27, 31, 35, 39, 43, 47, 50}));
}

// Stages of 30 and 20 B. Of the 6 pairs of 4 machines two are a whole stage: 30 or 20 s from the backup, then restart
// 2 x 1 + 1 + 5 = 8 s. In the other 4 ways regrouping is enough, 2 x 1 + 1 = 3 s: (4 x 3 + 38 + 28) / 6 = 13 s.
TEST(MigrationCosts, AWholeStageComesFromTheBackup) {
  const Shapes shapes = shapes_of({{1, 2}, {2, 2}});
  const auto costs = costs_of(support::small_pipeline(), shapes);
  EXPECT_NEAR(costs.expected(4, 1, 2, 0).count(), 13, 1e-12);
  EXPECT_NEAR(costs.expected(4, 1, 1, 0).count(), 3, 1e-12);
  EXPECT_EQ(costs.expected(4, 1, 0, 1).count(), 0);
}
// 1 x 2 and a spare; one of the three is lost. The spare: 3 s. Else its stage comes from the backup, 30 or 20 s, and
// the spare takes its place: a stranger (restart 10 + 2 x 2 + 1 + 5 = 20 s) or known to the group (8 s). Cold (3 + 50 +
// 40) / 3 = 31 s, warm (3 + 38 + 28) / 3 = 23 s.
TEST(MigrationCosts, WarmSparesCostLess) {
  const Shapes shapes = shapes_of({{1, 2}});
  EXPECT_NEAR(costs_of(support::small_pipeline(), shapes).expected(3, 0, 1, 0).count(), 31, 1e-12);
  EXPECT_NEAR(costs_of(support::small_pipeline(), shapes, {.spares = Spares::warm}).expected(3, 0, 1, 0).count(), 23,
              1e-12);
}
// 1 x 2 -> 2 x 1: the holder of 30 B fetches 20, then all 50 B go to the other, restart 2 x 1 + 1 + 3 = 6 s: 76 s.
// 1 x 1 -> 1 x 2: the one machine becomes the first stage, for the second's 20 B no machine is left; restart 20 s.
TEST(MigrationCosts, NewDepthFetchesWhatItLacks) {
  const Shapes shapes = shapes_of({{1, 1}, {1, 2}, {2, 1}});
  const auto released = costs_of(support::small_pipeline(), shapes);
  const auto summed = costs_of(support::small_pipeline(), shapes, {.last_stage_only = false});
  EXPECT_NEAR(released.expected(2, 1, 0, 2).count(), 76, 1e-12);
  EXPECT_NEAR(released.expected(2, 0, 0, 1).count(), 20, 1e-12);
  EXPECT_NEAR(summed.expected(2, 0, 0, 1).count(), 40, 1e-12);
  EXPECT_NEAR(released.restart(1, true).count(), 20, 1e-12);
  EXPECT_NEAR(released.whole_state(1).count(), 50, 1e-12);
}
// One of two machines is lost: it is the running one with chance 1/2, and only then is anything to pay.
TEST(MigrationCosts, AConstantIsPaidWhenSomethingChanges) {
  const Shapes shapes = shapes_of({{1, 1}, {2, 1}});
  const auto costs = MigrationCosts::constant(shapes, Seconds(30));
  EXPECT_EQ(costs.expected(2, 0, 0, 0).count(), 0);
  EXPECT_EQ(costs.expected(2, 0, 1, 0).count(), 15);
  EXPECT_EQ(costs.expected(2, 0, 0, 1).count(), 30);
  EXPECT_EQ(costs.expected(2, std::nullopt, 0, 1).count(), 30);
  EXPECT_EQ(costs.outcome(2, 0, 1, {0}, 0).count(), 0);
  EXPECT_EQ(costs.outcome(2, 0, 1, {1}, 0).count(), 30);
  EXPECT_EQ(costs.outcome(2, 0, 0, {0}, 1).count(), 30);
}

TEST(MigrationCosts, SayWhatAProfileLacks) {
  const Shapes shapes = shapes_of({{1, 2}, {1, 4}});
  Profile profile = support::small_pipeline();
  profile.pipeline->builds.resize(3);
  EXPECT_FALSE(MigrationCosts::make(profile, shapes));
  profile = support::small_pipeline();
  profile.pipeline->layers = {{4, 10}};
  EXPECT_FALSE(MigrationCosts::make(profile, shapes));
  profile.pipeline->transfers.clear();
  EXPECT_FALSE(MigrationCosts::make(profile, shapes));
  profile.pipeline->restart.reset();
  EXPECT_FALSE(MigrationCosts::make(profile, shapes));
  EXPECT_FALSE(MigrationCosts::make({.name = "none"}, shapes));
}

// Every change between shapes of at most ten machines, every set of up to four victims among ten or fewer.
TEST(MigrationCosts, ExpectationIsTheMeanOverAllVictims) {
  const auto all = pipeline_shapes(support::shipped_profile("parcae-bert"));
  std::vector<Shape> small;
  for (const Shape& shape : all->all()) {
    if (shape.machines() <= 10) small.push_back(shape);
  }
  const Shapes shapes = shapes_of(small);
  for (const MigrationOptions options : {MigrationOptions{}, MigrationOptions{Spares::warm, false}}) {
    const auto costs = costs_of(support::shipped_profile("parcae-bert"), shapes, options);
    for (int from = 0; from < shapes.size(); ++from) {
      for (int lost = 1; lost <= 4; ++lost) {
        for (int machines = std::max(8, shapes[from].machines()); machines <= 10; machines += 2) {
          const auto sets = victims(machines, shapes[from], lost);
          for (int to = 0; to < shapes.size(); ++to) {
            double mean = 0;
            for (const auto& [by_stage, p] : sets)
              mean += p * costs.outcome(machines, from, lost, by_stage, to).count();
            ASSERT_NEAR(costs.expected(machines, from, lost, to).count(), mean, 1e-9)
                << machines << " machines, " << lost << " lost, shape " << from << " to " << to;
          }
        }
      }
    }
    EXPECT_EQ(costs.error().count(), 0);
  }
}

struct Key {
  int machines;
  Shape from;
  int lost;
  Shape to;
};
void expect_sampler_agrees(const std::string& name, const std::vector<Key>& keys) {
  const Profile profile = support::shipped_profile(name);
  const auto shapes = pipeline_shapes(profile);
  const auto costs = costs_of(profile, *shapes);
  for (const Key& key : keys) {
    const Sampled sample = sampled(costs, *shapes, key.machines, key.from, key.lost, key.to);
    const double exact = costs.expected(key.machines, *shapes->find(key.from), key.lost, *shapes->find(key.to)).count();
    EXPECT_NEAR(exact, sample.mean, 4 * sample.error + 1e-9) << name << " " << key.machines << " -" << key.lost;
  }
  EXPECT_EQ(costs.error().count(), 0);
}
TEST(MigrationCosts, TenThousandDrawsAgreeWithTheExpectation) {
  expect_sampler_agrees("parcae-bert", {{32, {8, 4}, 4, {7, 4}},
                                        {32, {10, 3}, 6, {13, 2}},
                                        {31, {10, 3}, 3, {7, 4}},
                                        {28, {9, 3}, 2, {9, 3}},
                                        {19, {4, 4}, 3, {4, 4}},
                                        {18, {2, 8}, 4, {7, 2}},
                                        {24, {2, 12}, 5, {2, 8}}});
  expect_sampler_agrees("parcae-resnet152", {{32, {16, 2}, 6, {6, 4}},
                                             {24, {12, 2}, 2, {11, 2}},
                                             {29, {14, 2}, 3, {14, 2}},
                                             {20, {5, 4}, 5, {3, 4}},
                                             {16, {2, 8}, 3, {1, 12}}});
}

// From nothing to 4 x 4, the fullest of BERT's four stages being 6 layers x 12,596,224 x 12 B and 31,782,912 x 12 B
// more: 0.143 + 1,437.8 to the other copies, 6,600 + 35 + 1,500 + 30 + 1,095 restart = 10,697.9 ms.
TEST(MigrationCosts, FirstAndGrowingStepsCostWhatTheReferenceSays) {
  const Profile bert = support::shipped_profile("parcae-bert");
  const auto shapes = pipeline_shapes(bert);
  const auto costs = costs_of(bert, *shapes);
  EXPECT_NEAR(ms(costs, *shapes, 0, {}, 0, {4, 4}), 10697.9, 0.05);
  EXPECT_NEAR(ms(costs, *shapes, 19, {4, 4}, 0, {11, 2}), 14298.3, 0.05);
  const Profile resnet = support::shipped_profile("parcae-resnet152");
  const auto resnet_shapes = pipeline_shapes(resnet);
  const auto resnet_costs = costs_of(resnet, *resnet_shapes);
  EXPECT_NEAR(ms(resnet_costs, *resnet_shapes, 0, {}, 0, {8, 2}), 12810.6, 0.05);
  EXPECT_NEAR(ms(resnet_costs, *resnet_shapes, 23, {8, 2}, 0, {12, 2}), 13560.5, 0.05);
}

// restart(4 x 8) with newcomers: 6,600 + 35 + (4 + 8 + 1 + 32) x 500 + 240 + 234.8155 + 430 x 6 = 32,189.8 ms.
TEST(MigrationCosts, GptChangesCostWhatTheReferenceSays) {
  const Shapes shapes =
      shapes_of({{1, 13}, {1, 26}, {2, 9}, {2, 11}, {2, 13}, {2, 16}, {3, 7}, {3, 8}, {3, 9}, {4, 8}});
  const auto costs = costs_of(support::gpt_pipeline(), shapes);
  EXPECT_NEAR(1000 * costs.restart(*shapes.find({4, 8}), true).count(), 32189.815, 1e-3);
  EXPECT_NEAR(1000 * costs.restart(*shapes.find({4, 8}), false).count(), 4858.315, 1e-3);
  const struct {
    int machines;
    Shape from, to;
    double cost;
  } known[] = {{0, {}, {2, 9}, 27848.072},      {18, {2, 9}, {2, 11}, 30006.405}, {18, {2, 9}, {3, 7}, 30926.007},
               {18, {2, 9}, {3, 9}, 32847.929}, {28, {2, 13}, {4, 8}, 36994.598}, {32, {4, 8}, {3, 8}, 1689.8},
               {32, {4, 8}, {2, 16}, 6139.038}, {26, {2, 13}, {1, 13}, 1375.4},   {26, {1, 26}, {2, 13}, 7039.939}};
  for (const auto& row : known)
    EXPECT_NEAR(ms(costs, shapes, row.machines, row.from, 0, row.to), row.cost, 1e-2) << row.to.stages;
  // Sampled reference: cold spares are strangers (26 > 26 - 4 machines), the larger grid sheds what it has too many of.
  EXPECT_NEAR(ms(costs, shapes, 32, {2, 13}, 4, {2, 13}), 31720, 32);
  EXPECT_NEAR(ms(costs, shapes, 32, {4, 8}, 4, {2, 13}), 6220, 6.5);
}

// The released table charges the last stage's part of a sum; a spare the group knows is never dearer than a stranger.
TEST(MigrationCosts, OptionsActOneWay) {
  const Profile profile = support::shipped_profile("parcae-bert");
  const auto shapes = pipeline_shapes(profile);
  const auto released = costs_of(profile, *shapes);
  const auto summed = costs_of(profile, *shapes, {.last_stage_only = false});
  const auto warm = costs_of(profile, *shapes, {.spares = Spares::warm});
  int dearer = 0;
  int cheaper = 0;
  for (int from = 0; from < shapes->size(); ++from) {
    if ((*shapes)[from].machines() > 21) continue;
    for (int to = 0; to < shapes->size(); ++to) {
      for (const int lost : {0, 1, 3}) {
        const double cost = released.expected(21, from, lost, to).count();
        ASSERT_GE(summed.expected(21, from, lost, to).count(), cost - 1e-9);
        ASSERT_LE(warm.expected(21, from, lost, to).count(), cost + 1e-9);
        dearer += summed.expected(21, from, lost, to).count() > cost + 1e-9;
        cheaper += warm.expected(21, from, lost, to).count() < cost - 1e-9;
      }
    }
  }
  EXPECT_GT(dearer, 0);
  EXPECT_GT(cheaper, 0);
}

// 2 x 16 losing 12 of 32 has some three million ways to lose, so bounds stand in for the mean; it lies between them,
// also where 12 survivors are too few for 14 stages.
TEST(MigrationCosts, ErrorBoundsWhatIsNotListed) {
  const Profile profile = support::shipped_profile("parcae-bert");
  const auto shapes = pipeline_shapes(profile);
  for (const bool last_stage_only : {true, false}) {
    for (const Key& key : {Key{32, {2, 16}, 12, {1, 14}}, Key{32, {2, 16}, 12, {4, 4}}, Key{32, {2, 16}, 12, {6, 2}},
                           Key{32, {2, 16}, 20, {1, 14}}}) {
      const auto costs = costs_of(profile, *shapes, {.last_stage_only = last_stage_only});
      const double middle =
          costs.expected(key.machines, *shapes->find(key.from), key.lost, *shapes->find(key.to)).count();
      const Sampled sample = sampled(costs, *shapes, key.machines, key.from, key.lost, key.to);
      EXPECT_GT(costs.error().count(), 0);
      EXPECT_NEAR(middle, sample.mean, costs.error().count());
    }
  }
}

}  // namespace
}  // namespace mayfly
