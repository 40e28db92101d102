#include "control/controller.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "control/job.h"

namespace mayfly {
namespace {

/// One to four machines side by side, ten samples a second each.
const Shapes& four_wide() {
  static const Shapes shapes({{1, 1}, {2, 1}, {3, 1}, {4, 1}}, {10, 20, 30, 40});
  return shapes;
}
const MigrationCosts& half_a_minute() {
  static const MigrationCosts costs = MigrationCosts::constant(four_wide(), Seconds(30));
  return costs;
}
Controller controller_with(PolicyName policy, const ControllerOptions& options = {}) {
  return {four_wide(), make_policy(policy, four_wide(), half_a_minute(), {.most_machines = 4}), options};
}
Joined spot(WorkerId worker, double price = 0.9) {
  return {.worker = worker, .type = "p3.2xlarge", .zone = "a", .market = Market::spot, .price = {price}};
}

/// A controller whose ticks come as soon as they are due.
struct Driven {
  explicit Driven(PolicyName policy, const ControllerOptions& options = {})
      : controller(controller_with(policy, options)) {}

  std::vector<Command> tell(double now, const Event& event) {
    std::vector<Command> all = controller.step(Seconds(now), event).commands;
    const auto due = std::find(all.begin(), all.end(), Command(Wake{Seconds(now)}));
    if (due == all.end()) return all;
    for (const Command& command : controller.step(Seconds(now), Tick{}).commands) all.push_back(command);
    return all;
  }
  Controller controller;
};
template <class T>
std::vector<T> of_kind(const std::vector<Command>& commands) {
  std::vector<T> found;
  for (const Command& command : commands) {
    if (const T* one = std::get_if<T>(&command)) found.push_back(*one);
  }
  return found;
}

TEST(Controller, AssignsTheMachinesThereAre) {
  Driven driven(PolicyName::reactive);
  const auto assigned = of_kind<Assign>(driven.tell(0, spot(7)));
  ASSERT_EQ(assigned.size(), 1u);
  EXPECT_EQ(assigned[0].shape, (Shape{1, 1}));
  EXPECT_EQ(assigned[0].members, std::vector<WorkerId>{7});
  EXPECT_EQ(assigned[0].generation, 1);
}

TEST(Controller, WhoStaysKeepsItsSeat) {
  Driven driven(PolicyName::reactive);
  for (const WorkerId worker : {1, 2, 3}) driven.tell(0, spot(worker));
  driven.tell(5, Lost{2});
  const auto assigned = of_kind<Assign>(driven.tell(9, spot(4)));
  ASSERT_EQ(assigned.size(), 1u);
  EXPECT_EQ(assigned[0].members, (std::vector<WorkerId>{1, 3, 4}));
}

TEST(Controller, WhoIsLeftOutForAWhileMayJoinAgain) {
  Driven driven(PolicyName::reactive);
  for (const WorkerId worker : {1, 2}) driven.tell(0, spot(worker));
  driven.tell(5, Lost{.worker = 2, .returns = true});
  EXPECT_EQ(of_kind<Assign>(driven.tell(9, spot(2))).at(0).members, (std::vector<WorkerId>{1, 2}));
  driven.tell(10, Lost{2});
  EXPECT_TRUE(driven.tell(11, spot(2)).empty()) << "it is gone for good";
  const auto again = event_in(journal_line(Seconds(5), Lost{.worker = 2, .returns = true}));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->event, Event(Lost{.worker = 2, .returns = true}));
  const auto other = event_in(R"({"t_s":5,"event":"lost","worker":"w2","returns":"yes"})");
  ASSERT_TRUE(other);
  EXPECT_EQ(other->event, Event(Lost{2}));
}

TEST(Controller, AcceptsTheNextStepOfItsGenerationOnly) {
  Driven driven(PolicyName::reactive);
  driven.tell(0, spot(1));
  driven.tell(1, StepCommitted{1, 0, 10});
  for (const StepCommitted& other : {StepCommitted{1, 0, 10}, {1, 20, 10}, {0, 10, 10}, {2, 10, 10}, {1, 10, -1}}) {
    driven.tell(2, other);
    EXPECT_EQ(driven.controller.committed(), 10);
  }
  driven.tell(3, StepCommitted{1, 10, 10});
  EXPECT_EQ(driven.controller.committed(), 20);
}

// A share of what is done as tolerance would take the doubled step for the next one: 8 of 10^8 samples.
TEST(Controller, ADoubledStepCountsOnceHoweverMuchIsDone) {
  Driven driven(PolicyName::reactive);
  driven.tell(0, spot(1));
  driven.tell(1, StepCommitted{1, 0, 1e8});
  driven.tell(2, StepCommitted{1, 1e8, 8});
  driven.tell(3, StepCommitted{1, 1e8, 8});
  EXPECT_EQ(driven.controller.committed(), 1e8 + 8);
}

TEST(Controller, ACheckpointHoldsOnlyWhatWasCommittedAndNeverLess) {
  Driven driven(PolicyName::reactive);
  driven.tell(0, spot(1));
  driven.tell(1, StepCommitted{1, 0, 100});
  driven.tell(2, CheckpointDone{100});
  driven.tell(3, CheckpointDone{50});
  driven.tell(3, CheckpointDone{101});
  EXPECT_EQ(driven.controller.checkpointed(), 100);
}

TEST(Controller, ARollbackAfterTheEndChangesNothing) {
  Driven driven(PolicyName::reactive, {.promise = {.samples = 100}});
  driven.tell(0, spot(1));
  driven.tell(1, StepCommitted{1, 0, 100});
  ASSERT_TRUE(driven.controller.finished());
  driven.tell(2, RolledBack{1});
  driven.tell(2, RolledBack{2});
  EXPECT_EQ(driven.controller.committed(), 100);
}

TEST(Controller, AStateThatIsLostWithoutItsMachinesLeadsToAGenerationThatMayRollBack) {
  Driven driven(PolicyName::reactive);
  driven.tell(0, spot(1));
  EXPECT_TRUE(driven.tell(1, StateLost{1}).empty());  // nothing was trained
  driven.tell(1, StepCommitted{1, 0, 100});
  driven.tell(2, CheckpointDone{100});
  driven.tell(3, StepCommitted{1, 100, 100});
  driven.tell(4, RolledBack{1});
  EXPECT_EQ(driven.controller.committed(), 200);
  const auto assigned = of_kind<Assign>(driven.tell(5, StateLost{1}));
  ASSERT_EQ(assigned.size(), 1u);
  EXPECT_EQ(assigned[0].members, (std::vector<WorkerId>{1}));
  EXPECT_TRUE(driven.tell(5, StateLost{1}).empty());  // says it twice
  driven.tell(6, RolledBack{assigned[0].generation});
  EXPECT_EQ(driven.controller.committed(), 100);
}

// A server at 1.8 USD/h and a machine at as much from 1000 s on: 0.5 + 2 * 0.5.
TEST(Controller, PaysForWhatStandsFromTheFirstSecond) {
  Driven driven(PolicyName::reactive, {.standing = {1.8}});
  driven.tell(1000, spot(1, 1.8));
  driven.tell(2000, Lost{1});
  EXPECT_NEAR(driven.controller.spent().value, 1.5, 1e-12);
}

// 1.8 USD/h: 0.01 USD is spent after 20 s, when the tick was asked for.
TEST(Controller, AsksToBeWokenWhenTheBudgetEnds) {
  Driven driven(PolicyName::reactive, {.promise = {.budget = Usd{0.01}}});
  const auto wakes = of_kind<Wake>(driven.tell(0, spot(1, 1.8)));
  ASSERT_FALSE(wakes.empty());
  EXPECT_NEAR(wakes.back().at.count(), 20, 1e-9);
  EXPECT_EQ(of_kind<Finish>(driven.tell(wakes.back().at.count(), Tick{})).size(), 1u);
  EXPECT_EQ(driven.controller.why_finished(), Finish::Why::budget);
  EXPECT_NEAR(driven.controller.spent().value, 0.01, 1e-12);
}

TEST(Controller, PaysUntilTheMachineIsLostAndNoLonger) {
  Driven driven(PolicyName::reactive);
  driven.tell(0, spot(1, 3.6));
  driven.tell(1000, Lost{1});
  driven.tell(5000, Tick{});
  EXPECT_NEAR(driven.controller.spent().value, 1, 1e-12);  // 3.6 USD/h for 1000 s
}

// 3.6 USD/h for 1000 s in zone a; in b 3.6 for 500 s and 7.2 for 500 s.
TEST(Controller, APriceIsOfOneKind) {
  Driven driven(PolicyName::reactive);
  Joined other = spot(2, 3.6);
  other.zone = "b";
  Joined rented = spot(3, 3.6);
  rented.market = Market::on_demand;
  for (const Joined& machine : {spot(1, 3.6), other, rented}) driven.tell(0, machine);
  driven.tell(500, Priced{.type = "p3.2xlarge", .zone = "b", .price = {7.2}});
  driven.tell(500, Priced{.type = "p3.2xlarge", .zone = "a", .price = {0}, .market = Market::on_demand});
  driven.tell(1000, Tick{});
  EXPECT_NEAR(driven.controller.spent().value, 1 + 1.5 + 0.5, 1e-12);
}

/// Shows what a policy is shown, and wants what it is told to want.
struct Shown : Policy {
  struct Notes {
    std::vector<Holding> holdings{};
    std::vector<Want> wants{};
  };
  explicit Shown(Notes& kept) : notes(kept) {}
  Decision decide(const Situation& situation) override {
    notes.holdings = situation.holdings;
    return {.wants = notes.wants, .again = situation.now + Seconds(1)};
  }
  Notes& notes;
};

// Two of zone a for 1800 s each and one of b for 900 s, one of a lost; what is given back is not lost.
TEST(Controller, KeepsAnAccountOfEveryKind) {
  Shown::Notes notes;
  Controller controller(four_wide(), std::make_unique<Shown>(notes), {});
  Joined other = spot(3, 2);
  other.zone = "b";
  controller.step(Seconds(0), spot(1, 1));
  controller.step(Seconds(0), spot(2, 1));
  controller.step(Seconds(900), other);
  controller.step(Seconds(900), Notice{2, Seconds(900)});
  controller.step(Seconds(1800), Lost{2});
  notes.wants = {{.kind = other.kind(), .count = 0}};
  controller.step(Seconds(1800), Tick{});
  ASSERT_EQ(notes.holdings.size(), 2u);
  EXPECT_EQ(
      notes.holdings[0],
      (Holding{
          .kind = spot(1).kind(), .usable = 1, .price = {1}, .arrivals = 2, .lost = 1, .machine_time = Seconds(3600)}));
  EXPECT_EQ(notes.holdings[0].lost_per_hour(), 1);
  EXPECT_EQ(notes.holdings[1].lost_per_hour(), 0);
  controller.step(Seconds(1801), Tick{});
  EXPECT_EQ(notes.holdings[1].usable, 0);
  EXPECT_EQ(notes.holdings[1].lost, 0);
}

TEST(Controller, OrdersWhatIsWantedOfEachKindOnce) {
  Shown::Notes notes;
  Controller controller(four_wide(), std::make_unique<Shown>(notes), {});
  const MachineKind east{"p3.2xlarge", "east", Market::on_demand};
  const MachineKind west{"p3.2xlarge", "west", Market::on_demand};
  notes.wants = {{east, 1}, {west, 2}};
  controller.step(Seconds(0), spot(1));
  const auto first = controller.step(Seconds(0), Tick{}).commands;
  EXPECT_EQ(of_kind<Acquire>(first), (std::vector<Acquire>{{east, 1}, {west, 2}}));
  controller.step(Seconds(60), Joined{.worker = 2, .type = "p3.2xlarge", .zone = "west", .market = Market::on_demand});
  EXPECT_TRUE(of_kind<Acquire>(controller.step(Seconds(60), Tick{}).commands).empty());
  ASSERT_EQ(notes.holdings.size(), 3u);
  EXPECT_EQ(notes.holdings[1].ordered, 1);  // east
  EXPECT_EQ(notes.holdings[2].ordered, 1);
  EXPECT_EQ(notes.holdings[2].usable, 1);
}

TEST(Controller, ATimerThatFiresEarlyIsSetAgain) {
  Driven driven(PolicyName::reactive, {.settle = Seconds(5)});
  driven.tell(0, spot(1));
  const auto wakes = of_kind<Wake>(driven.tell(4.9999, Tick{}));
  ASSERT_EQ(wakes.size(), 1u);
  EXPECT_EQ(wakes[0].at, Seconds(5));
  EXPECT_EQ(of_kind<Assign>(driven.tell(5, Tick{})).size(), 1u);
}

TEST(Controller, AMachineThatOutlivesItsNoticeIsGivenBack) {
  Driven driven(PolicyName::reactive, {.overstay = Seconds(60)});
  driven.tell(0, spot(1));
  driven.tell(10, Notice{1, Seconds(30)});
  EXPECT_TRUE(of_kind<Release>(driven.tell(99, Tick{})).empty());
  EXPECT_EQ(of_kind<Release>(driven.tell(100, Tick{})), std::vector<Release>{{1}});
}

// Four machines at most: the fifth of the market takes the place of the rented one; the sixth has no place.
TEST(Controller, MachinesOfTheMarketTakeThePlaceOfRentedOnes) {
  Driven driven(PolicyName::persist, {.most_machines = 4});
  Joined rented = spot(2, 3.06);
  rented.market = Market::on_demand;
  for (const Joined& machine : {spot(1), rented, spot(3), spot(4)}) driven.tell(0, machine);
  const auto fifth = driven.tell(60, spot(5));
  EXPECT_EQ(of_kind<Release>(fifth), std::vector<Release>{{2}});
  ASSERT_EQ(of_kind<Assign>(fifth).size(), 1u);
  EXPECT_EQ(of_kind<Assign>(fifth)[0].members, (std::vector<WorkerId>{1, 5, 3, 4}));
  EXPECT_EQ(driven.tell(90, spot(6)).front(), Command(Release{6}));
}

// Four rented machines train 40,000 samples in 1000 s. With 1200 s left no restart is afforded beside the reserve of
// 630 s. With 10,000 s it is, and 1000 s at 2.16 USD/h less save more than two restarts of 30 s of four machines
// at 3.06.
TEST(Controller, ANewcomerTakesTheRentedMachinesPlaceOnlyWhereTheDeadlineAllows) {
  for (const auto& [deadline, goes] : {std::pair{1200, 5}, {2000, 4}}) {
    Driven driven(PolicyName::liveput,
                  {.promise = {.samples = 40'000, .deadline = Seconds(deadline)}, .most_machines = 4});
    Joined rented = spot(1, 3.06);
    rented.market = Market::on_demand;
    for (rented.worker = 1; rented.worker <= 4; ++rented.worker) driven.tell(0, rented);
    EXPECT_EQ(of_kind<Release>(driven.tell(10, spot(5))), std::vector<Release>{{goes}});
  }
}

TEST(Controller, APromiseByADeadlineIsLookedAtWithoutAnyMachine) {
  Driven driven(PolicyName::deadline, {.promise = {.samples = 40'000, .deadline = Seconds(1700)}});
  const auto ordered = of_kind<Acquire>(driven.tell(0, Tick{}));
  ASSERT_EQ(ordered.size(), 1u);
  EXPECT_EQ(ordered[0].count, 4);
  Driven patient(PolicyName::deadline, {.promise = {.samples = 40'000}});
  EXPECT_TRUE(patient.tell(0, Tick{}).empty());
}

TEST(Controller, WhatThePolicyWarnsOfIsToldAndInTheJournal) {
  Controller controller(four_wide(),
                        make_policy(PolicyName::deadline, four_wide(), half_a_minute(),
                                    {.most_machines = 4, .offers = {{.market = Market::on_demand, .limit = 0}}}),
                        {.promise = {.samples = 40'000, .deadline = Seconds(1700)}});
  controller.keep_journal(true);
  const Reaction reaction = controller.step(Seconds(0), Tick{});
  EXPECT_TRUE(of_kind<Acquire>(reaction.commands).empty());
  const auto warned = of_kind<Warn>(reaction.commands);
  ASSERT_EQ(warned.size(), 1u);
  EXPECT_EQ(warned[0].what, "only machines nobody takes will do: 0 % done at 0 % of the time");
  ASSERT_EQ(reaction.records.size(), 2u);
  EXPECT_EQ(reaction.records[1],
            R"({"t_s":0.0,"command":"warn","what":"only machines nobody takes will do: 0 % done at 0 % of the time"})");
}

TEST(Controller, AfterTheEndMachinesAreSentBackAndNothingElse) {
  Driven driven(PolicyName::reactive, {.promise = {.samples = 10}});
  driven.tell(0, spot(1));
  const auto last = driven.tell(1, StepCommitted{1, 0, 10});
  EXPECT_EQ(last, (std::vector<Command>{Release{1}, Finish{Finish::Why::target}}));
  EXPECT_EQ(driven.tell(2, spot(2)), std::vector<Command>{Release{2}});
  EXPECT_TRUE(driven.tell(3, Lost{2}).empty());
  EXPECT_TRUE(driven.tell(900, Tick{}).empty());
}

TEST(Controller, ATargetToBeSavedIsTheEndOnceACheckpointHoldsIt) {
  Driven driven(PolicyName::reactive, {.promise = {.samples = 90}, .save_at_target = true});
  driven.tell(0, spot(1));
  EXPECT_EQ(driven.tell(1, StepCommitted{1, 0, 100}), std::vector<Command>{Checkpoint{}});
  EXPECT_FALSE(driven.controller.finished());
  driven.tell(2, CheckpointDone{80});
  EXPECT_FALSE(driven.controller.finished());
  driven.tell(3, CheckpointDone{100});
  EXPECT_EQ(driven.controller.why_finished(), Finish::Why::target);
}

TEST(Controller, AnEstimateReplacesThePromisedSamples) {
  Driven driven(PolicyName::reactive, {.promise = {.samples = 100}});
  driven.tell(0, spot(1));
  driven.tell(1, Estimated{150});
  driven.tell(2, StepCommitted{1, 0, 120});
  EXPECT_FALSE(driven.controller.finished());
  for (const double none : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()})
    driven.tell(3, Estimated{none});
  EXPECT_EQ(driven.controller.target(), 150);
  driven.tell(4, StepCommitted{1, 120, 30});
  EXPECT_EQ(driven.controller.why_finished(), Finish::Why::target);
}

TEST(Controller, AnEstimateOfNoMoreThanIsCommittedIsTheEnd) {
  Driven driven(PolicyName::reactive);
  driven.tell(0, spot(1));
  driven.tell(2, StepCommitted{1, 0, 120});
  driven.tell(3, Estimated{110});
  EXPECT_EQ(driven.controller.target(), 120);
  EXPECT_EQ(driven.controller.why_finished(), Finish::Why::target);
}

TEST(Controller, AnEstimateMayMakeASavedTargetOneThatIsNotReached) {
  Driven driven(PolicyName::reactive, {.promise = {.samples = 100}, .save_at_target = true});
  driven.tell(0, spot(1));
  driven.tell(1, StepCommitted{1, 0, 100});
  driven.tell(2, Estimated{150});
  driven.tell(3, CheckpointDone{100});
  EXPECT_FALSE(driven.controller.finished());
  driven.tell(4, StepCommitted{1, 100, 20});
  EXPECT_EQ(driven.controller.committed(), 120);
  EXPECT_EQ(driven.tell(5, Estimated{120}), std::vector<Command>{Checkpoint{}});
}

TEST(JournalLine, OfAnEventIsReadBackToTheLastBit) {
  const std::vector<Event> events{Joined{3, "t", "z", Market::on_demand, {0.1 + 0.2}},
                                  Joined{4, "", "", Market::spot, {1e-17}},
                                  Notice{3, Seconds(1.0 / 3)},
                                  Lost{3},
                                  StepCommitted{7, 1e15 + 1, 0.1},
                                  CheckpointDone{12},
                                  RolledBack{2},
                                  StateLost{3},
                                  Priced{"t", "z", {2.5}},
                                  Priced{"t", "", {2.5}, Market::on_demand},
                                  Charged{"t", "z", {0.1}, Market::spot, Seconds(0.7)},
                                  Expected{Seconds(1e9 + 1e-6)},
                                  Estimated{1e9 / 7},
                                  Measured{0.1 + 0.2},
                                  Tick{}};
  for (const Event& event : events) {
    const auto again = event_in(journal_line(Seconds(1.0 / 7), event));
    ASSERT_TRUE(again.has_value());
    EXPECT_EQ(*again, (TimedEvent{Seconds(1.0 / 7), event}));
  }
  EXPECT_FALSE(event_in(journal_line(Seconds(1), Command(Pause{1}), "")).has_value());
  EXPECT_FALSE(event_in("not JSON").has_value());
}

TEST(UnmeasuredJob, GrowsToThousandsOfMachines) {
  const Job job = unmeasured_job(2000);
  EXPECT_EQ(job.shapes.most_machines(), 2000);
  EXPECT_EQ(job.shapes[*job.shapes.best(1500)], (Shape{1500, 1}));
}

}  // namespace
}  // namespace mayfly
