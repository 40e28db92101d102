// How a run is told to end, and what it does before it does.

#include <gtest/gtest.h>

#include "data/order.h"
#include "run/session.h"

namespace mayfly {
namespace {

using Signal = Session::Signal;

constexpr std::int64_t kSamples = 1000;

/// A run of one worker, which does as it is told but for the step in hand.
struct OneWorker {
  OneWorker() : job(unmeasured_job(1)) {
    inputs.spec.train.emplace().batch = 8;
    inputs.spec.train->checkpoint.every = Seconds(3600);
    inputs.spec.steps = 1000;
    inputs.roles.assign(1, MachineRole{.type = "spot"});
    inputs.job = &job;
    session = std::make_unique<Session>(inputs, [](const MachineRole&) { return Expectation{.start = Seconds(30)}; });
    session->begin(now);
    const Hello hello{.pid = 1, .role = "worker", .launch = 0, .machine = "-0"};
    session->seen(now, {.launch = 0, .stage = Sighting::Stage::running});
    session->connected(now, session->hello(now, hello)->worker, hello);
    session->hear(now, 1, Ready{.samples = kSamples});
    wait(Seconds(1));
    finish_step();
  }
  /// Time in which it beats, and answers what it hears.
  void wait(Seconds length) {
    for (const Seconds end = now + length; now < end; now += Seconds(0.1)) {
      session->hear(now, 1, Alive{});
      session->pass(now);
      answer();
    }
  }
  void answer() {
    for (auto acts = session->acts(); !acts.empty(); acts = session->acts()) {
      for (const Act& act : acts) {
        if (const auto* letter = std::get_if<Letter>(&act)) read(letter->message);
        if (const auto* say = std::get_if<Say>(&act)) said = say->text;
        const auto* ask = std::get_if<Ask>(&act);
        if (ask != nullptr && !ask->ends.empty()) killed = true;
      }
    }
  }
  void read(const ToMember& message) {
    if (const auto* form = std::get_if<Form>(&message)) session->hear(now, 1, Reachable{.formation = form->formation});
    if (const auto* peers = std::get_if<Peers>(&message)) session->hear(now, 1, Formed{.formation = peers->formation});
    if (const auto* proceed = std::get_if<Proceed>(&message)) in_hand = *proceed;
    if (std::holds_alternative<WriteCheckpoint>(message)) ++asked;
    if (std::holds_alternative<Leave>(message)) dismissed = true;
  }
  void finish_step() {
    session->hear(now, 1, done_step());
    answer();
  }
  /// Of a worker that has done what it was told.
  StepDone done_step() const {
    return {.formation = in_hand.formation,
            .first_sample = in_hand.committed,
            .samples = 8,
            .read = SampleOrder(kSamples, inputs.spec.train->seed).reading(in_hand.committed, 8)};
  }
  void write_checkpoint() {
    const CheckpointWritten checkpoint{.sample = in_hand.committed, .path = "checkpoint"};
    session->hear(now, 1, checkpoint);
    session->published(now, checkpoint, {});
    answer();
  }

  Job job;
  RunInputs inputs{};
  std::unique_ptr<Session> session{};
  Seconds now{};
  Proceed in_hand{};
  int asked = 0;  ///< to save
  bool dismissed = false;
  bool killed = false;
  std::string said{};
};

TEST(Stop, WaitsForTheStepAndItsCheckpoint) {
  OneWorker run;
  ASSERT_EQ(run.in_hand.committed, 8);
  run.session->signal(run.now, Signal::terminate);
  run.wait(Seconds(1));
  EXPECT_EQ(run.asked, 0);
  run.finish_step();
  EXPECT_EQ(run.in_hand.committed, 16);
  EXPECT_EQ(run.asked, 1);
  EXPECT_FALSE(run.dismissed);
  run.write_checkpoint();
  EXPECT_TRUE(run.dismissed);
  EXPECT_EQ(run.session->ended(), RunEnd::stopped);
}

TEST(Stop, TerminatedAgainAndAgainItStillSaves) {
  OneWorker run;
  for (int i = 0; i < 20; ++i) {
    run.session->signal(run.now, Signal::terminate);
    run.wait(Seconds(0.2));
  }
  EXPECT_FALSE(run.session->over());
  EXPECT_FALSE(run.killed);
  run.finish_step();
  run.session->signal(run.now, Signal::terminate);
  run.write_checkpoint();
  run.session->signal(run.now, Signal::terminate);  // while it leaves
  run.answer();
  EXPECT_FALSE(run.session->over());
  EXPECT_FALSE(run.killed);
}

TEST(Stop, AnEchoOfAnInterruptIsNone) {
  OneWorker run;
  run.session->signal(run.now, Signal::interrupt);
  run.session->signal(run.now + Seconds(0.9), Signal::interrupt);
  run.answer();
  EXPECT_FALSE(run.session->over());
  EXPECT_EQ(run.said, "saving; once more to end at once");
  run.session->signal(run.now + Seconds(1.1), Signal::interrupt);
  run.answer();
  EXPECT_TRUE(run.session->over());
  EXPECT_TRUE(run.killed);
  EXPECT_EQ(run.session->ended(), RunEnd::stopped);
}

TEST(Stop, AnInterruptAfterATermIsTheFirst) {
  OneWorker run;
  run.session->signal(run.now, Signal::terminate);
  run.wait(Seconds(2));
  run.session->signal(run.now, Signal::interrupt);
  run.answer();
  EXPECT_FALSE(run.session->over());
  EXPECT_EQ(run.said, "once more to end at once");
  run.wait(Seconds(2));
  run.session->signal(run.now, Signal::interrupt);
  EXPECT_TRUE(run.session->over());
}

// Everybody was told at once: the worker goes too, in 8 s, so the step has 2 s.
TEST(Stop, AWorkerThatGoesTooIsAskedToSaveInTime) {
  for (const bool worker_first : {false, true}) {
    OneWorker run;
    const Seconds start = run.now;
    if (worker_first) run.session->hear(run.now, 1, Leaving{.left_s = 8});
    run.session->signal(run.now, Signal::terminate);
    if (!worker_first) run.session->hear(run.now, 1, Leaving{.left_s = 8});
    while (run.asked == 0 && run.now < start + Seconds(60)) run.wait(Seconds(0.1));
    EXPECT_LE((run.now - start).count(), 2.3);
    EXPECT_FALSE(run.dismissed);
    run.write_checkpoint();
    EXPECT_EQ(run.session->ended(), RunEnd::stopped);
  }
}

// The notice came first, the step in hand ended, and the worker was asked to save and stands nowhere any more.
TEST(Stop, WaitsForACheckpointThatIsBeingWritten) {
  OneWorker run;
  run.session->hear(run.now, 1, Leaving{.left_s = 30});
  run.finish_step();
  run.wait(Seconds(0.5));
  ASSERT_EQ(run.asked, 1);
  run.session->signal(run.now, Signal::terminate);
  run.wait(Seconds(0.5));
  EXPECT_FALSE(run.dismissed);
  run.write_checkpoint();
  EXPECT_TRUE(run.dismissed);
  EXPECT_EQ(run.session->ended(), RunEnd::stopped);
}

}  // namespace
}  // namespace mayfly
