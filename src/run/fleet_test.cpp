#include "run/fleet.h"

#include <gtest/gtest.h>

namespace mayfly {
namespace {

constexpr Seconds kStart{0};

Fleet::Options two_workers() {
  return {.workers = 2, .roles = {{.type = "a"}, {.type = "b"}}, .replacement = Seconds(1)};
}

void run(Fleet& fleet, Seconds now, int launch) {
  fleet.seen(now, {.launch = launch, .stage = Sighting::Stage::running});
}

void lose(Fleet& fleet, Seconds now, int launch, Ending::Kind kind = Ending::Kind::preempted) {
  fleet.seen(now, {.launch = launch, .stage = Sighting::Stage::gone, .ending = Ending{.kind = kind, .how = "gone"}});
}

TEST(Fleet, OrdersEachRoleOnceAndThenNothing) {
  Fleet fleet(two_workers());
  EXPECT_TRUE(fleet.wishes(kStart).orders.empty()) << "not before it begins";
  fleet.begin(kStart);
  const auto orders = fleet.wishes(kStart).orders;
  ASSERT_EQ(orders.size(), 2u);
  EXPECT_EQ(orders[0].role.type, "a");
  EXPECT_EQ(orders[1].role.type, "b");
  EXPECT_TRUE(fleet.wishes(Seconds(100)).orders.empty());
}

// Lost at 5 s, replaced a second later, by the role that is missing and under a number of its own.
TEST(Fleet, ReplacesAWhileAfterALoss) {
  Fleet fleet(two_workers());
  fleet.begin(kStart);
  fleet.wishes(kStart);
  run(fleet, Seconds(1), 0);
  run(fleet, Seconds(1), 1);
  lose(fleet, Seconds(5), 0);
  EXPECT_TRUE(fleet.wishes(Seconds(5.9)).orders.empty());
  EXPECT_EQ(fleet.due(), Seconds(6));
  const auto orders = fleet.wishes(Seconds(6)).orders;
  ASSERT_EQ(orders.size(), 1u);
  EXPECT_EQ(orders[0].role.type, "a");
  EXPECT_EQ(orders[0].launch, 2);
}

// Launch 0 is about to go and is replaced by 2. When 1 is lost meanwhile, 0 must not be counted as staying.
TEST(Fleet, AMachineThatIsAboutToGoDoesNotStandInForALostOne) {
  Fleet fleet(two_workers());
  fleet.begin(kStart);
  fleet.wishes(kStart);
  fleet.leaves(Seconds(1), 0);
  EXPECT_EQ(fleet.wishes(Seconds(2)).orders.size(), 1u);
  lose(fleet, Seconds(3), 1);
  EXPECT_EQ(fleet.wishes(Seconds(4)).orders.size(), 1u);
  lose(fleet, Seconds(5), 0);
  EXPECT_TRUE(fleet.wishes(Seconds(9)).orders.empty()) << "that one was replaced before it went";
  EXPECT_EQ(fleet.launches().size(), 2u);
}

// 1, 2 and 4 s after orders in a row that were refused, or whose programs could not be started; told once.
TEST(Fleet, OrdersThatComeToNothingAreTriedEverMoreRarely) {
  for (const Ending::Kind kind : {Ending::Kind::refused, Ending::Kind::failed}) {
    Fleet fleet({.workers = 1, .roles = {{.type = "a"}}, .replacement = Seconds(1)});
    fleet.begin(kStart);
    Seconds now = kStart;
    int launch = fleet.wishes(now).orders.at(0).launch;
    for (const double pause : {1.0, 2.0, 4.0}) {
      lose(fleet, now, launch, kind);
      EXPECT_EQ(fleet.wishes(now).sayings.size(), pause == 1.0 ? 1u : 0u);
      EXPECT_TRUE(fleet.wishes(now + Seconds(pause - 0.01)).orders.empty());
      now += Seconds(pause);
      launch = fleet.wishes(now).orders.at(0).launch;
    }
  }
}

TEST(Fleet, ReleasedMachinesAreEndedAfterAWhileAndNotReplaced) {
  Fleet fleet(two_workers());
  fleet.begin(kStart);
  fleet.wishes(kStart);
  fleet.release(Seconds(1), 1, Seconds(3));
  EXPECT_TRUE(fleet.wishes(Seconds(3.9)).ends.empty());
  EXPECT_EQ(fleet.wishes(Seconds(4)).ends, std::vector<int>{1});
  lose(fleet, Seconds(4), 1);
  EXPECT_TRUE(fleet.wishes(Seconds(9)).orders.empty());
}

// Both make room for others that never come: after a while the run wants what it wanted first.
TEST(Fleet, WhatWasGivenBackMakesRoomAndARunIsNeverLeftWithoutMachines) {
  Fleet fleet(two_workers());
  fleet.begin(kStart);
  fleet.wishes(kStart);
  for (const int launch : {0, 1}) {
    run(fleet, kStart, launch);
    fleet.give_up(launch);
  }
  const MachineRole rented = fleet.spare_role({.market = Market::on_demand});
  ASSERT_TRUE(fleet.acquire(Seconds(1), {rented, rented})) << "none has gone yet";
  EXPECT_EQ(fleet.wishes(Seconds(1)).orders.size(), 2u);
  for (const int launch : {2, 3}) fleet.give_up(launch);
  for (const int launch : {0, 1, 2, 3}) lose(fleet, Seconds(2), launch);
  const auto orders = fleet.wishes(Seconds(60)).orders;
  ASSERT_EQ(orders.size(), 2u);
  EXPECT_EQ(orders[0].role, two_workers().roles[0]);
}

// A life of 100 s: its successor is ordered 10 s before the end, and it is told when that one is ready.
TEST(Fleet, AMachineWithALifetimeHasASuccessorBeforeItsEnd) {
  Fleet fleet({.workers = 1, .roles = {{.type = "a", .limits = {.lifetime = Seconds(100)}}}});
  fleet.begin(kStart);
  fleet.wishes(kStart);
  run(fleet, Seconds(0), 0);
  EXPECT_TRUE(fleet.wishes(Seconds(89)).orders.empty());
  EXPECT_EQ(fleet.wishes(Seconds(90)).orders.size(), 1u);
  run(fleet, Seconds(91), 1);
  EXPECT_TRUE(fleet.wishes(Seconds(92)).tells.empty());
  fleet.settled(Seconds(92), 1);
  EXPECT_EQ(fleet.wishes(Seconds(92)).tells, std::vector<int>{0});
  lose(fleet, Seconds(93), 0);
  EXPECT_TRUE(fleet.wishes(Seconds(99)).orders.empty());
}

TEST(Fleet, AMachineThatNeverSaysAWordIsEnded) {
  Fleet::Options options = two_workers();
  options.expected = [](const MachineRole&) { return Expectation{.start = Seconds(10)}; };
  Fleet fleet(options);
  fleet.begin(kStart);
  fleet.wishes(kStart);
  run(fleet, kStart, 0);
  run(fleet, kStart, 1);
  fleet.greeted(1, 7);
  EXPECT_EQ(fleet.wishes(Seconds(40)).ends, std::vector<int>{0}) << "four times what is expected";
}

TEST(Fleet, AnOrderSaysWhatItWaitsFor) {
  Fleet fleet(two_workers());
  fleet.begin(kStart);
  fleet.wishes(kStart);
  fleet.seen(kStart, {.launch = 0, .where = "job 7_0 waits in spot: Resources"});
  EXPECT_EQ(fleet.find(0)->where, "job 7_0 waits in spot: Resources");
  EXPECT_FALSE(fleet.find(0)->since) << "it costs nothing";
  fleet.seen(Seconds(1), {.launch = 0, .stage = Sighting::Stage::running, .where = "n1, job 7_0"});
  EXPECT_EQ(fleet.find(0)->where, "n1, job 7_0");
}

TEST(Fleet, WhatAnEngineHasForgottenIsUnknownAfterAWhile) {
  Fleet fleet(two_workers());
  fleet.begin(kStart);
  fleet.wishes(kStart);
  EXPECT_TRUE(fleet.unknown_to(Seconds(5), {}).empty()) << "the order may be on its way";
  EXPECT_EQ(fleet.unknown_to(Seconds(30), {{.launch = 1}}), std::vector<int>{0});
}

TEST(Fleet, ARecordBringsLaunchesRolesAndNamesBack) {
  Fleet fleet(two_workers());
  fleet.begin(kStart);
  fleet.wishes(kStart);
  fleet.greeted(1, 7);
  Fleet later(two_workers());
  later.restore(Seconds(50), fleet.record());
  EXPECT_EQ(later.kept(), fleet.kept());
  EXPECT_EQ(later.launch_of(7), 1);
  later.begin(Seconds(50));
  EXPECT_TRUE(later.wishes(Seconds(50)).orders.empty()) << "nothing is ordered twice";
  EXPECT_TRUE(later.numbered(1));
  EXPECT_FALSE(later.numbered(2));
}

TEST(Fleet, APriceIsOfOneKindThereOrToCome) {
  Fleet fleet(two_workers());
  fleet.begin(kStart);
  fleet.wishes(kStart);
  run(fleet, kStart, 0);
  run(fleet, kStart, 1);
  lose(fleet, Seconds(5), 0);
  EXPECT_TRUE(fleet.priced({.type = "a"}, {2.5}));
  EXPECT_FALSE(fleet.priced({.type = "a"}, {2.5})) << "said twice";
  EXPECT_EQ(fleet.find(1)->role.price, UsdPerHour{});
  const auto orders = fleet.wishes(Seconds(10)).orders;
  ASSERT_EQ(orders.size(), 1u);
  EXPECT_EQ(orders[0].role.price, UsdPerHour{2.5});
}

TEST(Fleet, MoreIsAcquiredOnlyWhereThereIsRoom) {
  Fleet fleet(two_workers());
  fleet.begin(kStart);
  fleet.wishes(kStart);
  run(fleet, kStart, 0);
  EXPECT_TRUE(fleet.acquire(kStart, {fleet.spare_role({.market = Market::on_demand})}))
      << "the order that waits does not count";
  run(fleet, kStart, 1);
  const auto full = fleet.acquire(kStart, {fleet.spare_role({.market = Market::on_demand})});
  ASSERT_FALSE(full);
  EXPECT_NE(full.error().message.find("may use 2 at a time"), std::string::npos);
}

// Ten seconds of life are over when it is first heard of, and so is the run.
TEST(Fleet, OrdersNoSuccessorForARunThatIsOver) {
  Fleet::Options options{.workers = 1, .roles = {{.type = "spot", .limits = {.lifetime = Seconds(10)}}}};
  Fleet fleet(options);
  fleet.begin(Seconds(0));
  ASSERT_EQ(fleet.wishes(Seconds(0)).orders.size(), 1u);
  fleet.close();
  fleet.seen(Seconds(20), {.launch = 0, .stage = Sighting::Stage::running, .age = Seconds(20)});
  EXPECT_TRUE(fleet.wishes(Seconds(20)).orders.empty());
}

// Paid for since 1 s; worker 3 joins, and is lost at 5 s; the machine stays and gets worker 4, which joins and is lost
// at 9 s. After a restart in between the same holds, whatever the engine says of its age.
TEST(Fleet, KnowsUntilWhenAMachineIsCounted) {
  Fleet fleet({.workers = 1, .roles = {{.type = "spot"}}});
  fleet.begin(Seconds(0));
  fleet.wishes(Seconds(0));
  const auto uncounted = [](const Fleet& of) { return of.uncounted_since(*of.find(0)); };
  EXPECT_EQ(uncounted(fleet), std::nullopt);
  fleet.seen(Seconds(1), {.launch = 0, .stage = Sighting::Stage::running});
  EXPECT_EQ(uncounted(fleet), Seconds(1));
  fleet.greeted(0, 3);
  fleet.joined(3);
  EXPECT_EQ(uncounted(fleet), std::nullopt);
  fleet.parted(Seconds(5), 3);
  fleet.greeted(0, 4);
  EXPECT_EQ(uncounted(fleet), Seconds(5));
  Fleet later({.workers = 1, .roles = {{.type = "spot"}}});
  later.restore(Seconds(6), fleet.record());
  later.seen(Seconds(6), {.launch = 0, .stage = Sighting::Stage::running, .age = Seconds(30)});
  EXPECT_EQ(uncounted(later), Seconds(5));
  later.parted(Seconds(7), 3);  // that was before
  EXPECT_EQ(uncounted(later), Seconds(5));
  later.joined(4);
  later.parted(Seconds(9), 4);
  EXPECT_EQ(uncounted(later), Seconds(9));
}

}  // namespace
}  // namespace mayfly
