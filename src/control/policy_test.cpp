#include "control/policy.h"

#include <gtest/gtest.h>

namespace mayfly {
namespace {

/// Up to four machines side by side, and pipelines of two and three stages.
struct Table {
  Shapes shapes{{{1, 1}, {2, 1}, {3, 1}, {4, 1}, {1, 2}, {2, 2}, {1, 3}}, {10, 19, 27, 30, 18, 34, 20}};
  MigrationCosts costs = MigrationCosts::constant(shapes, Seconds(30));
  std::unique_ptr<Policy> policy(PolicyName name) const {
    return make_policy(name, shapes, costs, {.most_machines = 4});
  }
  Shape shape(const Decision& decision) const { return decision.shape ? shapes[*decision.shape] : Shape{}; }
};

const MachineKind kRented{.type = "p3.2xlarge", .market = Market::on_demand};

int on_demand(const Decision& decision) {
  int sum = 0;
  for (const Want& want : decision.wants) sum += want.kind.market == Market::on_demand ? want.count : 0;
  return sum;
}

TEST(PolicyName, IsReadBackFromItsWord) {
  for (const std::string& word : policy_names()) EXPECT_EQ(name(*policy_named(word)), word);
  EXPECT_FALSE(policy_named("hope").has_value());
}

TEST(Policies, AllPauseWithoutMachinesAndTrainWithEnough) {
  const Table table;
  for (const std::string& word : policy_names()) {
    const auto policy = table.policy(*policy_named(word));
    EXPECT_FALSE(policy->decide({.now = Seconds(0)}).shape.has_value()) << word;
    const Decision decision = policy->decide({.now = Seconds(60), .outlook = {.added = 4}});
    ASSERT_TRUE(decision.shape.has_value()) << word;
    EXPECT_LE(table.shape(decision).machines(), 4) << word;
  }
}

// 2x2 trains 34/s, 4x1 30/s.
TEST(Reactive, RebuildsTheFastestShapeOnEveryChange) {
  const Table table;
  const auto policy = table.policy(PolicyName::reactive);
  const Decision first = policy->decide({.outlook = {.added = 4}});
  EXPECT_EQ(table.shape(first), (Shape{2, 2}));
  EXPECT_TRUE(first.rebuild);
  EXPECT_FALSE(policy->decide({.now = Seconds(60), .before = 4, .shape = first.shape}).rebuild);
}

TEST(CheckpointRestart, LooksForGrowthAtItsPolls) {
  const Table table;
  const auto policy = table.policy(PolicyName::checkpoint);
  const auto one = policy->decide({.outlook = {.added = 1}}).shape;
  const Decision early = policy->decide({.now = Seconds(100), .before = 1, .outlook = {.added = 1}, .shape = one});
  EXPECT_EQ(early.shape, one);
  EXPECT_EQ(early.again, Seconds(300));
  const Decision poll = policy->decide({.now = Seconds(300), .before = 2, .shape = one});
  EXPECT_EQ(table.shape(poll), (Shape{2, 1}));
}

// The fastest shape has two stages; half again as deep are three.
TEST(Redundant, KeepsItsDepth) {
  const Table table;
  EXPECT_EQ(redundant_depth(table.shapes), 3);
  const auto policy = table.policy(PolicyName::redundant);
  EXPECT_EQ(table.shape(policy->decide({.outlook = {.added = 4}})), (Shape{1, 3}));
  EXPECT_FALSE(policy->decide({.now = Seconds(60), .before = 4, .outlook = {.removed = 2}}).shape.has_value());
}

// 10,000 of 100,000 samples at half time: 90,000 in 5000 s are 18/s, with the reserve of a tenth 19.8/s: three
// machines.
TEST(Deadline, OrdersTheFewestMachinesThatStillMakeIt) {
  const Table table;
  const Situation behind{.now = Seconds(5000),
                         .before = 1,
                         .shape = table.shapes.find({1, 1}),
                         .done = 10000,
                         .target = 100'000,
                         .deadline = Seconds(10000)};
  EXPECT_EQ(on_demand(table.policy(PolicyName::deadline)->decide(behind)), 2);
}

// 80,000 samples in 5000 s are 16/s, with the reserve 17.6/s: two machines. At 0.6 of the speed three train 16.2/s,
// four in two pipelines 20.4/s.
TEST(Deadline, ReckonsWithTheSpeedThatWasMeasured) {
  const Table table;
  Situation slow{.now = Seconds(5000),
                 .before = 1,
                 .shape = table.shapes.find({1, 1}),
                 .done = 20000,
                 .target = 100'000,
                 .deadline = Seconds(10000)};
  EXPECT_EQ(on_demand(table.policy(PolicyName::deadline)->decide(slow)), 1);
  slow.ratio = 0.6;
  const Decision decision = table.policy(PolicyName::deadline)->decide(slow);
  EXPECT_EQ(on_demand(decision), 3);
  EXPECT_EQ(decision.reason,
            "behind the clock: 20 % done at 50 % of the time; measured speed is 0.60 of the predicted");
}

// 60,000 samples in 2700 s are 22.2/s, with the reserve 24.4/s. The fastest shape's 34/s will do, 0.7 of them will not.
TEST(Liveput, CallsForMachinesWhenTheMeasuredSpeedIsTooLow) {
  const Table table;
  Situation s{.now = Seconds(7300), .done = 40'000, .target = 100'000, .deadline = Seconds(10'000)};
  EXPECT_EQ(on_demand(table.policy(PolicyName::liveput)->decide(s)), 0);
  s.ratio = 0.7;
  const Decision decision = table.policy(PolicyName::liveput)->decide(s);
  EXPECT_EQ(on_demand(decision), 4);
  EXPECT_EQ(decision.reason,
            "only machines nobody takes will do: 40 % done at 73 % of the time; measured speed is 0.70 of the "
            "predicted");
}

TEST(Deadline, DoesNotOrderAgainWhatIsOnItsWay) {
  const Table table;
  const Situation waiting{.now = Seconds(5000),
                          .before = 1,
                          .shape = table.shapes.find({1, 1}),
                          .holdings = {{.kind = kRented, .ordered = 2}},
                          .done = 10000,
                          .target = 100'000,
                          .deadline = Seconds(10000)};
  EXPECT_EQ(on_demand(table.policy(PolicyName::deadline)->decide(waiting)), 2);
}

TEST(Deadline, GivesMachinesBackWhenAhead) {
  const Table table;
  const Situation ahead{.now = Seconds(5000),
                        .before = 1,
                        .outlook = {.added = 2},
                        .shape = table.shapes.find({1, 1}),
                        .holdings = {{.kind = kRented, .usable = 2}},
                        .done = 60000,
                        .target = 100'000,
                        .deadline = Seconds(10000)};
  const Decision decision = table.policy(PolicyName::deadline)->decide(ahead);
  EXPECT_EQ(on_demand(decision), 0);
  EXPECT_EQ(table.shape(decision), (Shape{1, 1}));  // what is left
}

/// Three kinds on offer, and a run that is behind: three machines are wanted, as above, one of the market is there.
struct Offered {
  Table table{};
  MachineKind dear{"p3.2xlarge", "a", Market::on_demand};
  MachineKind cheap{"p3.2xlarge", "b", Market::on_demand};
  std::unique_ptr<Policy> policy =
      make_policy(PolicyName::deadline, table.shapes, table.costs,
                  {.most_machines = 4,
                   .offers = {{.type = "p3.2xlarge", .zone = "a", .rate = {3.06}, .limit = 4},
                              {.type = "p3.2xlarge", .zone = "b", .rate = {2.5}, .limit = 1}}});
  Situation behind{.now = Seconds(5000),
                   .before = 1,
                   .shape = table.shapes.find({1, 1}),
                   .holdings = {{.kind = {"p3.2xlarge", "a", Market::spot}, .usable = 1}},
                   .done = 10000,
                   .target = 100'000,
                   .deadline = Seconds(10000)};
};

TEST(Deadline, OrdersTheCheapestKindsUpToTheirLimits) {
  const Offered offered;
  EXPECT_EQ(offered.policy->decide(offered.behind).wants, (std::vector<Want>{{offered.cheap, 1}, {offered.dear, 1}}));
}

TEST(Deadline, ReckonsWithThePricesLastHeard) {
  Offered offered;
  offered.behind.holdings.push_back({.kind = offered.cheap, .price = {9}});
  EXPECT_EQ(offered.policy->decide(offered.behind).wants, (std::vector<Want>{{offered.cheap, 0}, {offered.dear, 2}}));
}

// One of the three rented ones is too many: the dearest goes, though the cheap one is younger.
TEST(Deadline, GivesTheDearestKindBackFirst) {
  Offered offered;
  offered.behind.before = 4;
  offered.behind.shape = offered.table.shapes.find({4, 1});
  offered.behind.holdings.push_back({.kind = offered.dear, .usable = 2, .price = {3.06}});
  offered.behind.holdings.push_back({.kind = offered.cheap, .usable = 1, .price = {2.5}});
  EXPECT_EQ(offered.policy->decide(offered.behind).wants, (std::vector<Want>{{offered.cheap, 1}, {offered.dear, 1}}));
}

// 3,000 samples are 97 s of the fastest shape with its reserve; a machine ordered now may need ten minutes to start.
TEST(Deadline, AllowsForTheTimeToGetMachines) {
  const Table table;
  Situation s{.now = Seconds(9200), .done = 97'000, .target = 100'000, .deadline = Seconds(10'000)};
  EXPECT_EQ(on_demand(table.policy(PolicyName::deadline)->decide(s)), 0);
  s.now = Seconds(9400);
  EXPECT_EQ(on_demand(table.policy(PolicyName::deadline)->decide(s)), 4);
}

// The same run with machines that start in 20 s and a look every 10 s: 97 s and 30 s are enough.
TEST(Deadline, WaitsLongerWhereMachinesStartSooner) {
  const Table table;
  const auto policy = make_policy(PolicyName::deadline, table.shapes, table.costs,
                                  {.most_machines = 4, .check = Seconds(10), .start = Seconds(20)});
  Situation s{.now = Seconds(9500), .done = 97'000, .target = 100'000, .deadline = Seconds(10'000)};
  const Decision early = policy->decide(s);
  EXPECT_EQ(on_demand(early), 0);
  EXPECT_EQ(early.again, Seconds(9510));
  s.now = Seconds(9880);
  EXPECT_EQ(on_demand(policy->decide(s)), 4);
}

TEST(Deadline, OrdersNothingWhenAllThatIsMissingIsToSaveIt) {
  const Table table;
  const Situation s{.now = Seconds(9900), .done = 100'000, .target = 100'000, .deadline = Seconds(10'000)};
  EXPECT_EQ(on_demand(table.policy(PolicyName::deadline)->decide(s)), 0);
}

TEST(Deadline, WithoutOneIsPersistence) {
  const Table table;
  const Situation s{.outlook = {.added = 3}};
  const Decision decision = table.policy(PolicyName::deadline)->decide(s);
  EXPECT_EQ(decision.shape, table.policy(PolicyName::persist)->decide(s).shape);
  EXPECT_EQ(on_demand(decision), 0);
}

// A change takes 30 s; from 19/s to 27/s pays for it within two minutes.
TEST(Persist, ChangesWhereItPaysAndStaysWhereNothingHappened) {
  const Table table;
  const auto policy = table.policy(PolicyName::persist);
  const auto two = table.shapes.find({2, 1});
  EXPECT_EQ(table.shape(policy->decide({.now = Seconds(60), .before = 2, .outlook = {.added = 1}, .shape = two})),
            (Shape{3, 1}));
  EXPECT_EQ(policy->decide({.now = Seconds(120), .before = 2, .shape = two}).shape, two);
}

}  // namespace
}  // namespace mayfly
