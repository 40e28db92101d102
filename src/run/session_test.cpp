#include "run/session.h"

#include <gtest/gtest.h>

#include <limits>

#include "data/order.h"

namespace mayfly {
namespace {

/// A process that drives a session and stores what it says, in memory.
struct Shell {
  Shell() : job(unmeasured_job(2)) {
    inputs.spec.train.emplace().batch = 8;
    inputs.spec.steps = 10;
    inputs.roles.assign(1, MachineRole{.type = "spot", .price = {3600}});  // a dollar a second
    inputs.priced = true;
    inputs.job = &job;
    start();
  }
  void start() {
    session = std::make_unique<Session>(inputs, [](const MachineRole&) { return Expectation{}; });
    now = session->restore(lines, notes);
    session->acts();
    session->begin(now);
    store();
  }
  void store() {
    for (const Act& act : session->acts()) {
      if (const auto* record = std::get_if<Record>(&act))
        lines.push_back(journal_line(record->event.time, record->event.event));
      if (const auto* note = std::get_if<Note>(&act)) notes[note->key] = note->value;
    }
  }
  void see(Seconds time, Sighting::Stage stage, Seconds age = {}) {
    session->seen(time, {.launch = 0, .stage = stage, .age = age});
    store();
  }
  void greet(Seconds time) {
    const Hello hello{.pid = 1, .role = "worker", .launch = 0, .machine = "-0"};
    const auto welcome = session->hello(time, hello);
    ASSERT_TRUE(welcome);
    session->connected(time, welcome->worker, hello);
    store();
  }
  double spent() const { return session->progress().spent.value_or(Usd{}).value; }

  Job job;
  RunInputs inputs{};
  std::vector<std::string> lines{};
  Session::Notes notes{};
  std::unique_ptr<Session> session{};
  Seconds now{};
};

// Paid for since 1 s, greeted at 2 s, gone at 5 s: four dollars, though it never was ready.
TEST(Session, PaysForAMachineThatNeverJoined) {
  Shell shell;
  shell.see(Seconds(1), Sighting::Stage::running);
  shell.greet(Seconds(2));
  shell.see(Seconds(5), Sighting::Stage::gone);
  EXPECT_DOUBLE_EQ(shell.spent(), 4);
}

// The same with another process from 0 s on, as nothing was recorded: seen there when it is 6 s old, gone 3 s later.
TEST(Session, PaysForAMachineThatNeverJoinedAfterARestart) {
  Shell shell;
  shell.see(Seconds(1), Sighting::Stage::running);
  shell.greet(Seconds(2));
  shell.start();
  ASSERT_EQ(shell.now, Seconds(0));
  shell.see(Seconds(1), Sighting::Stage::running, Seconds(6));
  shell.see(Seconds(4), Sighting::Stage::gone);
  EXPECT_DOUBLE_EQ(shell.spent(), 9);
}

// Its first welcome is lost, and it is greeted again under another name, by which it speaks. Nobody misses the first.
TEST(Session, AWorkerWhoseWelcomeWasLostIsOne) {
  Shell shell;
  shell.see(Seconds(1), Sighting::Stage::running);
  shell.greet(Seconds(2));
  shell.session->closed(Seconds(3), 1);
  shell.greet(Seconds(4));
  EXPECT_EQ(shell.session->members().size(), 1u);
  for (double time = 4; time < 20; time += 0.25) {
    shell.session->hear(Seconds(time), 2, Alive{});
    shell.session->pass(Seconds(time));
  }
  EXPECT_TRUE(shell.session->members().contains(2));
  for (const Act& act : shell.session->acts()) {
    const auto* ask = std::get_if<Ask>(&act);
    EXPECT_TRUE(ask == nullptr || ask->ends.empty());
  }
}

// Nobody has told that it runs; the list says so when it is 4 s old, and it is gone 2 s later.
TEST(Session, AMachineThatIsListedHasCome) {
  Shell shell;
  shell.session->listed(Seconds(5), {{.launch = 0, .stage = Sighting::Stage::running, .age = Seconds(4)}});
  shell.store();
  EXPECT_EQ(shell.session->fleet().find(0)->stage, Sighting::Stage::running);
  shell.see(Seconds(7), Sighting::Stage::gone);
  EXPECT_DOUBLE_EQ(shell.spent(), 6);
}

/// What it wants said to people, or why it failed.
std::string told(Session& session) {
  std::string text = session.failure().value_or("");
  for (const Act& act : session.acts()) {
    if (const auto* say = std::get_if<Say>(&act)) text += say->text + "\n";
  }
  return text;
}

/// A worker of its own accord that has loaded this, as far as a test lets it.
struct Guest {
  Guest(Shell& its_shell, Seconds time, const Ready& ready) : shell(its_shell), samples(ready.samples) {
    const Hello hello{.pid = 1, .role = "worker"};
    const auto welcome = shell.session->hello(time, hello);
    EXPECT_TRUE(welcome);
    id = welcome->worker;
    shell.session->connected(time, id, hello);
    shell.session->hear(time, id, ready);
  }
  void hear(Seconds time, const FromMember& message) { shell.session->hear(time, id, message); }
  /// The last lease that it is given, once it has done all that comes before it; none where nothing is leased.
  std::optional<Proceed> lease(Seconds time) {
    shell.session->pass(time);
    std::optional<Proceed> found;
    for (auto acts = shell.session->acts(); !acts.empty(); acts = shell.session->acts()) {
      for (const Act& act : acts) {
        if (std::holds_alternative<Seek>(act)) shell.session->sought(time, {});  // there is no checkpoint
        const auto* letter = std::get_if<Letter>(&act);
        if (letter == nullptr || letter->to != id) continue;
        saves = saves || std::holds_alternative<WriteCheckpoint>(letter->message);
        explains = explains || std::holds_alternative<Explain>(letter->message);
        if (const auto* form = std::get_if<Form>(&letter->message)) hear(time, Reachable{form->formation, "here"});
        if (const auto* peers = std::get_if<Peers>(&letter->message)) hear(time, Formed{peers->formation});
        if (const auto* proceed = std::get_if<Proceed>(&letter->message)) {
          if (!proceed->counts.empty()) found = *proceed;
        }
      }
    }
    return found;
  }
  StepDone done(const Proceed& lease, double loss = 1) const {
    return {.formation = lease.formation,
            .first_sample = lease.committed,
            .samples = 8,
            .read = SampleOrder(samples, 1).reading(lease.committed, 8),
            .loss = loss,
            .compute_s = 0.1};
  }

  Shell& shell;
  std::int64_t samples = 0;
  WorkerId id = 0;
  bool saves = false;
  bool explains = false;
};

constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

TEST(Session, AWorkerWithOtherDataIsNotLetIn) {
  Shell shell;
  shell.inputs.job_file = "job.yaml";
  Guest first(shell, Seconds(1), {.samples = 2000, .data = "2000 samples a"});
  const auto lease = first.lease(Seconds(1.1));
  ASSERT_TRUE(lease);
  first.hear(Seconds(2), first.done(*lease));
  first.lease(Seconds(2.1));
  Guest fewer(shell, Seconds(3), {.samples = 1000, .data = "1000 samples a"});
  EXPECT_FALSE(shell.session->members().contains(fewer.id));
  Guest other(shell, Seconds(4), {.samples = 2000, .data = "2000 samples b"});
  EXPECT_FALSE(shell.session->members().contains(other.id));
  const std::string text = told(*shell.session);
  EXPECT_NE(text.find("its data set has 1000 samples, that of the run 2000"), std::string::npos) << text;
  EXPECT_NE(text.find("2000 samples b, want 2000 samples a"), std::string::npos) << text;
}

TEST(Session, AWorkerThatReadsOtherSamplesEndsTheRun) {
  Shell shell;
  Guest guest(shell, Seconds(1), {.samples = 2000});
  auto lease = guest.lease(Seconds(1.1));
  ASSERT_TRUE(lease);
  guest.hear(Seconds(2), guest.done(*lease));
  lease = guest.lease(Seconds(2.1));
  ASSERT_TRUE(lease);
  // One that it has had before, in place of the last.
  StepDone done = guest.done(*lease);
  done.read = SampleOrder(2000, 1).reading(7, 8);
  guest.hear(Seconds(3), done);
  ASSERT_TRUE(shell.session->failure());
  EXPECT_EQ(*shell.session->failure(),
            "w1 has read other samples than the 8 from place 8 on that it was leased: not counted");
  EXPECT_EQ(shell.session->progress().samples, 8);
}

TEST(Session, ASlotIsTheMachinesThatTheEngineStarted) {
  Shell shell;
  shell.see(Seconds(1), Sighting::Stage::running);
  shell.greet(Seconds(2));
  for (const char* machine : {"", "-1", "another-0"}) {
    const auto refused = shell.session->hello(Seconds(3), {.pid = 2, .launch = 0, .machine = machine});
    ASSERT_FALSE(refused) << machine;
    EXPECT_EQ(refused.error().message,
              "slot 0 belongs to a machine that the run starts itself: a worker started by hand has none");
  }
  EXPECT_FALSE(shell.session->hello(Seconds(3), {.pid = 2, .launch = 7}));
  EXPECT_TRUE(shell.session->hello(Seconds(3), {.pid = 2}));
  // The engine's own keeps its connection and its place.
  EXPECT_TRUE(shell.session->members().contains(1));
}

// Of three workers in a row each fails at the same sample, after the one before it has trained up to there.
TEST(Session, WhatFailsThreeTimesAtOnePlaceEndsTheRun) {
  Shell shell;
  for (int attempt = 1; attempt <= 3; ++attempt) {
    ASSERT_FALSE(shell.session->failure());
    const Seconds start(10.0 * attempt);
    Guest guest(shell, start, {.samples = 2000});
    auto lease = guest.lease(start + Seconds(1));
    if (lease && lease->committed == 0) {
      guest.hear(start + Seconds(2), guest.done(*lease));
      lease = guest.lease(start + Seconds(2));
    }
    ASSERT_TRUE(lease) << attempt;
    EXPECT_EQ(lease->committed, 8);
    guest.hear(start + Seconds(3), Unable{"bad sample"});
  }
  ASSERT_TRUE(shell.session->failure());
  EXPECT_EQ(*shell.session->failure(), "w3 failed at sample 8, as others did before it: bad sample");
}

// Three steps without a number: what was before the first is saved, and then the run ends.
TEST(Session, ALossThatIsNoNumberEndsTheRunWithWhatWasBefore) {
  Shell shell;
  Guest guest(shell, Seconds(1), {.samples = 2000});
  auto lease = guest.lease(Seconds(1.1));
  ASSERT_TRUE(lease);
  guest.hear(Seconds(2), guest.done(*lease));
  for (int step = 1; step <= 3; ++step) {
    lease = guest.lease(Seconds(2 + step));
    ASSERT_TRUE(lease);
    EXPECT_EQ(guest.saves, step > 1);
    guest.hear(Seconds(2.5 + step), guest.done(*lease, kNoNumber));
  }
  EXPECT_FALSE(guest.lease(Seconds(6)));
  EXPECT_FALSE(shell.session->failure());  // the checkpoint is still being written
  shell.session->published(Seconds(7), {.sample = 8, .path = "checkpoint-1"}, {});
  ASSERT_TRUE(shell.session->failure());
  EXPECT_EQ(
      *shell.session->failure(),
      "the loss is no number for 3 steps in a row, up to sample 32; the state before them, of sample 8, is saved");
}

TEST(Session, ALossThatIsNoNumberNowAndThenEndsNothing) {
  Shell shell;
  Guest guest(shell, Seconds(1), {.samples = 2000});
  for (int step = 1; step <= 9; ++step) {
    const auto lease = guest.lease(Seconds(0.1 + step));
    ASSERT_TRUE(lease) << step;
    guest.hear(Seconds(0.5 + step), guest.done(*lease, step % 3 == 0 ? 1 : kNoNumber));
  }
  EXPECT_FALSE(shell.session->failure());
}

/// A run of a spot machine that has a profile and a deadline which one machine cannot keep.
struct Late : Shell {
  explicit Late(bool rents) {
    inputs.spec.deadline = Seconds(60);
    inputs.spec.steps = 1'000'000;
    inputs.profile = &profile;
    inputs.workers = 2;
    inputs.rents = rents;
    job.on_demand = UsdPerHour{7200};
    start();
    guest.emplace(*this, Seconds(1), Ready{.samples = 2000});
  }
  /// What is ordered on demand, and what is said of it.
  std::pair<int, std::string> ordered(Seconds until) {
    std::pair<int, std::string> found;
    for (Seconds time{2}; time < until; time += Seconds(1)) {
      session->pass(time);
      for (const Act& act : session->acts()) {
        if (const auto* say = std::get_if<Say>(&act)) found.second += say->text + "\n";
        if (const auto* ask = std::get_if<Ask>(&act)) {
          for (const Order& order : ask->orders) found.first += order.role.market == Market::on_demand;
        }
      }
    }
    return found;
  }
  Profile profile{};
  std::optional<Guest> guest{};
};

TEST(Session, RentsMachinesOnDemandOnlyWhereItMay) {
  const auto [ordered, said] = Late(true).ordered(Seconds(50));
  EXPECT_GT(ordered, 0);
  EXPECT_NE(said.find("ordered, on-demand"), said.npos) << said;
  const auto [none, warned] = Late(false).ordered(Seconds(50));
  EXPECT_EQ(none, 0) << warned;
  EXPECT_NE(warned.find("the deadline is in danger: "), warned.npos) << warned;
  EXPECT_NE(warned.find("--market spot,on-demand"), warned.npos) << warned;
}

// Its heartbeats go on; the first step may take 600 s, then it is asked where it is, and a second later it is lost.
TEST(Session, AWorkerThatDoesNotGetOnIsLost) {
  Shell shell;
  Guest guest(shell, Seconds(1), {.samples = 2000});
  ASSERT_TRUE(guest.lease(Seconds(2)));
  for (double time = 2; time < 604; time += 0.25) {
    guest.hear(Seconds(time), Alive{.doing = "compute"});
    guest.lease(Seconds(time));
    EXPECT_FALSE(guest.explains && time < 602) << time;
  }
  EXPECT_TRUE(guest.explains);
  EXPECT_FALSE(shell.session->members().contains(guest.id));
}

// An epoch is one step. The look at the validation set at its end has no limit, however long the step with it takes.
TEST(Session, AWorkerThatLooksAtTheValidationSetIsGivenTime) {
  Shell shell;
  shell.inputs.spec.train->validation.emplace();
  Guest guest(shell, Seconds(1), {.samples = 8});
  const auto first = guest.lease(Seconds(2));
  ASSERT_TRUE(first);
  guest.hear(Seconds(3), guest.done(*first));
  const auto second = guest.lease(Seconds(3));
  ASSERT_TRUE(second && second->evaluate);
  for (double time = 3; time < 2000; time += 0.25) {
    guest.hear(Seconds(time), Alive{.doing = "compute"});
    guest.lease(Seconds(time));
  }
  EXPECT_FALSE(guest.explains);
  EXPECT_TRUE(shell.session->members().contains(guest.id));
}

// The one machine that it wants: first only ordered, then rented without a word, then a worker of the run.
TEST(Session, AMachineIsInTheStatusFromItsOrderOn) {
  Shell shell;
  const auto only = [&] {
    const auto machines = shell.session->status().machines;
    EXPECT_EQ(machines.size(), 1u);
    return machines.empty() ? MachineStatus{} : machines[0];
  };
  EXPECT_EQ(only().state, "ordered");
  EXPECT_FALSE(only().held());
  shell.see(Seconds(1), Sighting::Stage::running);
  EXPECT_EQ(only().name, "");
  EXPECT_EQ(only().stage, "running");
  EXPECT_TRUE(only().held());
  shell.greet(Seconds(2));
  EXPECT_EQ(only().name, "w1");
  EXPECT_EQ(only().since, Seconds(2));
}

}  // namespace
}  // namespace mayfly
