#include "run/session.h"

#include <gtest/gtest.h>

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
    const Hello hello{.pid = 1, .role = "worker", .launch = 0};
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
