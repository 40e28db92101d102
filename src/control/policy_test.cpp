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

Shape table_shape(const Offered& offered, const Decision& decision) { return offered.table.shape(decision); }

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

// Behind, and nothing may be ordered: nothing is, and it is said, once until it is not so any more.
TEST(Deadline, SaysSoWhereNoMachineOnDemandMayBeOrdered) {
  for (const PolicyName name : {PolicyName::deadline, PolicyName::liveput}) {
    Offered offered;
    const auto policy =
        make_policy(name, offered.table.shapes, offered.table.costs,
                    {.most_machines = 4, .offers = {{.type = "p3.2xlarge", .market = Market::on_demand, .limit = 0}}});
    offered.behind.now = Seconds(6500);
    const Decision first = policy->decide(offered.behind);
    EXPECT_EQ(on_demand(first), 0);
    EXPECT_TRUE(first.warning.ends_with("10 % done at 65 % of the time")) << first.warning;
    EXPECT_EQ(table_shape(offered, first), (Shape{1, 1})) << "what there is trains on";
    EXPECT_EQ(policy->decide(offered.behind).warning, "");
    Situation ahead = offered.behind;
    ahead.done = 90'000;
    EXPECT_EQ(policy->decide(ahead).warning, "");
    EXPECT_NE(policy->decide(offered.behind).warning, "");
  }
  Offered offered;
  EXPECT_EQ(offered.policy->decide(offered.behind).warning, "") << "what is short is ordered";
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

/// The same table with a restart of twelve minutes. The reserve is 300 s to the next check, 300 s of start and 720 s of
/// restart: 1320 s. A change that may be cut off takes 1440 s more.
struct SlowTable : Table {
  MigrationCosts slow = MigrationCosts::constant(shapes, Seconds(720));
  std::unique_ptr<Policy> policy(PolicyName name) const {
    return make_policy(name, shapes, slow, {.most_machines = 4});
  }
  /// 34,000 samples are missing, 1000 s of the fastest shape; so much time is left.
  static Situation with(Seconds left) {
    return {.now = Seconds(50'000) - left, .done = 66'000, .target = 100'000, .deadline = Seconds(50'000)};
  }
};

// Nothing trains: the work, the reserve and a change that may be cut off are 3760 s.
TEST(Deadline, KeepsARestartInReserve) {
  const SlowTable table;
  EXPECT_EQ(on_demand(table.policy(PolicyName::liveput)->decide(SlowTable::with(Seconds(3770)))), 0);
  EXPECT_EQ(on_demand(table.policy(PolicyName::liveput)->decide(SlowTable::with(Seconds(3750)))), 4);
}

// The fastest shape on spot machines uses up no time. It is let train as long as its loss leaves 1020 s for start and
// restart beside the work, and when these are not left; in between machines nobody takes can still take over.
TEST(Deadline, LetsTheMarketTrainWhileItsLossCanBeMadeUpFor) {
  const SlowTable table;
  for (const auto& [left, rented] : {std::pair{2100, 0}, {1900, 4}, {1600, 0}}) {
    Situation riding = SlowTable::with(Seconds(left));
    riding.before = 4;
    riding.shape = table.shapes.find({2, 2});
    riding.holdings = {{.kind = {"p3.2xlarge", "a", Market::spot}, .usable = 4}};
    const Decision decision = table.policy(PolicyName::liveput)->decide(riding);
    EXPECT_EQ(on_demand(decision), rented) << left;
    EXPECT_EQ(decision.shape.has_value(), rented == 0) << left;
  }
}

// One of four is lost with 2500 s left, 1500 s more than the work: four are rented, and the three go back, since a
// restart of theirs would be under way when the others come. Two that come alone do not begin one either.
TEST(Deadline, GoesOverToMachinesNobodyTakesInOneChange) {
  const SlowTable table;
  const auto policy = table.policy(PolicyName::liveput);
  Situation s = SlowTable::with(Seconds(2500));
  s.before = 4;
  s.outlook.removed = 1;
  s.shape = table.shapes.find({2, 2});
  const MachineKind market{"p3.2xlarge", "a", Market::spot};
  s.holdings = {{.kind = market, .usable = 3}};
  const Decision ordered = policy->decide(s);
  EXPECT_EQ(ordered.wants, (std::vector<Want>{{market, 0}, {{.market = Market::on_demand}, 4}}));
  EXPECT_FALSE(ordered.shape.has_value());
  s.now += Seconds(120);
  s.before = 0;
  s.outlook = {.added = 2};
  s.shape.reset();
  s.holdings = {{.kind = kRented, .usable = 2, .ordered = 2}};
  EXPECT_FALSE(policy->decide(s).shape.has_value());
  s.before = 2;
  s.holdings = {{.kind = kRented, .usable = 4}};
  EXPECT_EQ(table.shape(policy->decide(s)), (Shape{2, 2}));
}

// 27/s will be done in 1259 s, which leaves 991 s: less than start and restart. The spot machine among the three goes
// for good, so what trained is broken up, though as many machines came as go.
TEST(Deadline, ANewcomerOnDemandDoesNotStandInForTheSpotMachineGivenBack) {
  const SlowTable table;
  Situation s = SlowTable::with(Seconds(2250));
  s.before = 3;
  s.outlook.added = 1;
  s.shape = table.shapes.find({3, 1});
  s.holdings = {{.kind = {"p3.2xlarge", "a", Market::spot}, .usable = 1}, {.kind = kRented, .usable = 3}};
  const Decision decision = table.policy(PolicyName::liveput)->decide(s);
  EXPECT_EQ(on_demand(decision), 4);
  EXPECT_FALSE(decision.shape.has_value());
}

// An order that is 300 s old and not here is not to be relied on: what is there trains.
TEST(Deadline, DoesNotWaitForMachinesThatAreOverdue) {
  const SlowTable table;
  Situation s = SlowTable::with(Seconds(2500));
  s.outlook.added = 4;
  s.holdings = {{.kind = {"p3.2xlarge", "a", Market::spot}, .usable = 4},
                {.kind = kRented, .ordered = 4, .oldest = s.now - Seconds(300)}};
  EXPECT_EQ(table.shape(table.policy(PolicyName::liveput)->decide(s)), (Shape{2, 2}));
}

// 180,000 samples in 10,000 s are 18/s, with the reserve 19.8/s: three machines, of which two are rented and here. A
// restart is as long as the look-ahead, so that would leave them idle; 27/s instead of 10/s save 11,333 s.
TEST(Deadline, HasRentedMachinesTrainWhereAChangeIsLong) {
  const SlowTable table;
  const Situation s{.now = Seconds(10'000),
                    .before = 1,
                    .outlook = {.added = 2},
                    .shape = table.shapes.find({1, 1}),
                    .holdings = {{.kind = kRented, .usable = 2}},
                    .done = 20'000,
                    .target = 200'000,
                    .deadline = Seconds(20'000)};
  EXPECT_EQ(table.policy(PolicyName::persist)->decide(s).shape, s.shape);
  const Decision decision = table.policy(PolicyName::deadline)->decide(s);
  EXPECT_EQ(on_demand(decision), 2);
  EXPECT_EQ(table.shape(decision), (Shape{3, 1}));
}

/// One machine on demand at 3 USD/h trains, 10,000 s of work are left, and one of the market has come at 1 USD/h. Two
/// restarts of 720 s cost 4320 s USD/h, which 2160 s of the market's machine save.
struct Newcomer {
  Shapes shapes{{{1, 1}}, {10}};
  MigrationCosts costs = MigrationCosts::constant(shapes, Seconds(720));
  Market goes(Seconds slack, int lost, Seconds held) const {
    const Situation s{.before = 1,
                      .outlook = {.added = 1},
                      .shape = 0,
                      .holdings = {{.kind = kRented, .usable = 1, .price = {3}},
                                   {.kind = {"p3.2xlarge", "a", Market::spot},
                                    .usable = 1,
                                    .price = {1},
                                    .lost = lost,
                                    .machine_time = held}},
                      .target = 100'000,
                      .deadline = Seconds(10'000) + slack};
    return make_policy(PolicyName::deadline, shapes, costs, {.most_machines = 1})->surplus(s, Market::spot);
  }
};

TEST(Deadline, TradesARentedMachineOnlyForOneThatStaysLongEnough) {
  const Newcomer newcomer;
  EXPECT_EQ(newcomer.goes(Seconds(5000), 2, Seconds(2 * 2170)), Market::on_demand);
  EXPECT_EQ(newcomer.goes(Seconds(5000), 2, Seconds(2 * 2150)), Market::spot);
  EXPECT_EQ(newcomer.goes(Seconds(5000), 0, Seconds(0)), Market::on_demand);
}

// 1320 s of reserve and 1440 s for a change that is cut off.
TEST(Deadline, TradesARentedMachineOnlyWhereAChangeIsAfforded) {
  const Newcomer newcomer;
  EXPECT_EQ(newcomer.goes(Seconds(2770), 0, Seconds(0)), Market::on_demand);
  EXPECT_EQ(newcomer.goes(Seconds(2750), 0, Seconds(0)), Market::spot);
}

// Ahead of the clock, with nothing else to train on: to wait would cost a restart.
TEST(Deadline, KeepsRentedMachinesUntilTheMarketHasOthers) {
  const Table table;
  Situation s{.now = Seconds(5000),
              .before = 2,
              .shape = table.shapes.find({2, 1}),
              .holdings = {{.kind = kRented, .usable = 2}},
              .done = 60'000,
              .target = 100'000,
              .deadline = Seconds(10'000)};
  EXPECT_EQ(on_demand(table.policy(PolicyName::deadline)->decide(s)), 2);
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
