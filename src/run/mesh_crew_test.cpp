#include "run/mesh_crew.h"

#include <gtest/gtest.h>

#include <numeric>

namespace mayfly {
namespace {

/// Plays workers that do what they are told, as far as a test lets them.
struct MeshStage {
  MeshCrew crew{8, 0};
  std::vector<Letter> sent{};

  void collect() {
    for (Letter& letter : crew.letters()) sent.push_back(std::move(letter));
  }
  template <class M>
  std::vector<std::pair<WorkerId, M>> of() {
    collect();
    std::vector<std::pair<WorkerId, M>> found;
    for (const Letter& letter : sent) {
      if (const auto* message = std::get_if<M>(&letter.message)) found.emplace_back(letter.to, *message);
    }
    return found;
  }
  template <class M>
  M last(WorkerId worker) {
    M result{};
    for (const auto& [to, message] : of<M>()) {
      if (to == worker) result = message;
    }
    return result;
  }
  /// These begin a run together, and stand.
  void begin(const std::vector<WorkerId>& workers) {
    for (const WorkerId worker : workers) crew.arrived(worker);
    crew.assign(side_by_side(1, workers, 0));
    crew.roll_back("", 0, {});
    crew.go_on(1000);
    stand();
  }
  /// All workers of the formation come and join.
  void stand() {
    const auto ranks = crew.ranks();
    for (const WorkerId worker : ranks) crew.hear(worker, Reachable{crew.formation(), "at " + std::to_string(worker)});
    for (const WorkerId worker : ranks) crew.hear(worker, Formed{crew.formation()});
  }
  StepDone report() const {
    return {.formation = crew.formation(), .first_sample = crew.sample(), .samples = 8, .loss = 1, .compute_s = 0.1};
  }
};

TEST(MeshCrew, LeasesAStepOnceEveryoneStands) {
  MeshStage stage;
  stage.crew.arrived(1);
  stage.crew.arrived(2);
  ASSERT_FALSE(stage.crew.assign(side_by_side(1, {1, 2}, 0)));
  stage.crew.roll_back("", 0, {});
  stage.crew.go_on(100);
  EXPECT_TRUE(stage.of<Proceed>().empty());
  stage.stand();
  const auto proceed = stage.last<Proceed>(2);
  EXPECT_EQ(proceed.committed, 0);
  EXPECT_EQ(proceed.counts, (std::vector<int>{4, 4}));
  EXPECT_EQ(stage.last<Peers>(1).addresses, (std::vector<std::string>{"at 1", "at 2"}));
}

TEST(MeshCrew, AStepIsFinishedWithTheLastReportAndCountsOnlyWhenCommitted) {
  MeshStage stage;
  stage.crew.arrived(1);
  stage.crew.arrived(2);
  stage.crew.assign(side_by_side(1, {1, 2}, 0));
  stage.crew.roll_back("", 0, {});
  stage.crew.go_on(100);
  stage.stand();
  EXPECT_FALSE(stage.crew.hear(1, stage.report()));
  EXPECT_FALSE(stage.crew.hear(1, stage.report()));  // says it twice
  EXPECT_EQ(stage.crew.awaited(), (std::vector<WorkerId>{2}));
  const auto step = stage.crew.hear(2, stage.report());
  ASSERT_TRUE(step);
  EXPECT_EQ(step->range, (SampleRange{0, 8}));
  EXPECT_EQ(stage.crew.sample(), 0);
  stage.crew.commit();
  stage.crew.go_on(100);
  EXPECT_EQ(stage.last<Proceed>(1).committed, 8);
  EXPECT_EQ(stage.last<Proceed>(1).step, 1);
}

TEST(MeshCrew, ReportsOfAnOlderFormationAreNothing) {
  MeshStage stage;
  stage.crew.arrived(1);
  stage.crew.arrived(2);
  stage.crew.assign(side_by_side(1, {1, 2}, 0));
  stage.crew.roll_back("", 0, {});
  stage.crew.go_on(100);
  stage.stand();
  const StepDone old = stage.report();
  stage.crew.gone(2);
  ASSERT_TRUE(stage.crew.assign(side_by_side(2, {1}, 0)));  // 1 has stood at 0, so it holds the first weights
  stage.stand();
  EXPECT_FALSE(stage.crew.hear(1, old));
  EXPECT_FALSE(stage.crew.hear(2, old));
  EXPECT_EQ(stage.last<Proceed>(1).counts, (std::vector<int>{8}));
  EXPECT_TRUE(stage.crew.hear(1, stage.report()));
}

TEST(MeshCrew, ANewcomerReceivesTheStateOfOneWhoHoldsIt) {
  MeshStage stage;
  stage.crew.arrived(1);
  stage.crew.assign(side_by_side(1, {1}, 0));
  stage.crew.roll_back("", 0, {});
  stage.crew.go_on(100);
  stage.stand();
  stage.crew.hear(1, stage.report());
  stage.crew.commit();
  stage.crew.arrived(2);
  ASSERT_TRUE(stage.crew.assign(side_by_side(2, {2, 1}, 8)));
  const auto form = stage.last<Form>(2);
  EXPECT_EQ(form.sample, 8);
  EXPECT_EQ(form.source, 1);  // by rank
  EXPECT_EQ(form.receivers, (std::vector<int>{0}));
}

TEST(MeshCrew, AMachineThatLeavesHandsOverAndIsLetGo) {
  MeshStage stage;
  stage.crew.arrived(1);
  stage.crew.assign(side_by_side(1, {1}, 0));
  stage.crew.roll_back("", 0, {});
  stage.crew.go_on(100);
  stage.stand();
  stage.crew.hear(1, stage.report());
  stage.crew.commit();
  stage.crew.arrived(2);
  ASSERT_TRUE(stage.crew.assign(side_by_side(2, {2}, 8)));  // 1 has had its notice
  EXPECT_EQ(stage.crew.ranks(), (std::vector<WorkerId>{2, 1}));
  stage.stand();
  EXPECT_EQ(stage.crew.ranks(), (std::vector<WorkerId>{2}));
  EXPECT_TRUE(stage.last<Form>(2).receivers.empty());
  stage.stand();
  EXPECT_EQ(stage.last<Proceed>(2).counts, (std::vector<int>{8}));
}

// Formation 3 has led to sample 16, says the store.
TEST(MeshCrew, AWorkerThatComesBackWithTheCommittedStepInItsHandsHoldsItsEnd) {
  MeshStage stage;
  stage.crew.restore("3", 16);
  stage.crew.arrived(1, {.sample = 8, .pending = 16, .formation = 3});
  EXPECT_TRUE(stage.crew.assign(side_by_side(5, {1}, 16)));
  EXPECT_FALSE(stage.crew.assign(side_by_side(7, {1}, 24)));
}

// The same samples were trained again by others, whose sum is another: what it has in its hands counts for nothing.
TEST(MeshCrew, AStepOfAnEarlierFormationIsNotTheOneThatWasCommitted) {
  MeshStage stage;
  stage.crew.restore("3", 16);
  stage.crew.arrived(1, {.sample = 8, .pending = 16, .formation = 2});
  EXPECT_FALSE(stage.crew.assign(side_by_side(5, {1}, 16)));
  EXPECT_TRUE(stage.crew.assign(side_by_side(6, {1}, 8)));
}

TEST(MeshCrew, TheLastStepIsAsShortAsItMustBe) {
  MeshStage stage;
  stage.crew.arrived(1);
  stage.crew.assign(side_by_side(1, {1}, 0));
  stage.crew.roll_back("", 0, {});
  stage.crew.go_on(5);
  stage.stand();
  EXPECT_EQ(stage.last<Proceed>(1).counts, (std::vector<int>{5}));
  StepDone report = stage.report();
  report.samples = 5;
  ASSERT_TRUE(stage.crew.hear(1, report));
  stage.crew.commit();
  stage.crew.go_on(5);
  EXPECT_TRUE(stage.last<Proceed>(1).counts.empty());
}

TEST(MeshCrew, ACheckpointIsAskedForWhenSomebodyCanWriteIt) {
  MeshStage stage;
  stage.crew.arrived(1);
  stage.crew.assign(side_by_side(1, {1}, 0));
  stage.crew.roll_back("", 0, {});
  EXPECT_FALSE(stage.crew.write_checkpoint());
  stage.crew.go_on(100);
  stage.stand();
  EXPECT_EQ(stage.of<WriteCheckpoint>().size(), 1);
}

TEST(MeshCrew, ACheckpointIsAskedForAgainWhereItsWriterGoes) {
  MeshStage stage;
  stage.crew.arrived(1);
  stage.crew.arrived(2);
  stage.crew.assign(side_by_side(1, {1, 2}, 0));
  stage.crew.roll_back("", 0, {});
  stage.crew.go_on(100);
  stage.stand();
  ASSERT_TRUE(stage.crew.write_checkpoint());
  stage.crew.gone(1);
  ASSERT_TRUE(stage.crew.assign(side_by_side(2, {2}, 0)));
  stage.stand();
  const auto asked = stage.of<WriteCheckpoint>();
  ASSERT_EQ(asked.size(), 2);
  EXPECT_EQ(asked[1].first, 2);
  // It answers: a writer that goes now takes nothing along.
  stage.crew.hear(2, CheckpointWritten{});
  stage.crew.arrived(3);
  stage.crew.gone(2);
  stage.crew.assign(side_by_side(3, {3}, 0));
  stage.crew.roll_back("", 0, {});
  stage.stand();
  EXPECT_EQ(stage.of<WriteCheckpoint>().size(), 2);
}

TEST(Shares, AddUpAndFollowTheSpeeds) {
  EXPECT_EQ(shares(16, {3, 1}), (std::vector<int>{12, 4}));  // 1 + 14 * 3/4 = 11.5, 1 + 3.5 = 4.5: the first of equals
  EXPECT_EQ(shares(3, {1, 1, 1, 1}), (std::vector<int>{1, 1, 1, 0}));
  EXPECT_EQ(shares(4, {100, 1, 1, 1}), (std::vector<int>{1, 1, 1, 1}));
  for (int samples = 1; samples < 200; ++samples) {
    const auto counts = shares(samples, {0.3, 0, 7, 2.5, 2.5});
    EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), 0), samples);
  }
}

/// Worker 1 alone has trained a step of 8 samples, and 2 stands with it in a new formation that 3 is to join.
void train_one_and_hand_over(MeshStage& stage) {
  stage.crew.arrived(1, {.sample = 0});
  ASSERT_TRUE(stage.crew.assign(side_by_side(1, {1}, 0)));
  stage.crew.go_on(100);
  stage.stand();
  ASSERT_TRUE(stage.crew.hear(1, stage.report()));
  stage.crew.commit();
  stage.crew.arrived(2, {.sample = 0});
  stage.crew.arrived(3, {.sample = 0});
  ASSERT_TRUE(stage.crew.assign(side_by_side(2, {1, 2, 3}, 8)));
  for (const WorkerId worker : {1, 2, 3}) stage.crew.hear(worker, Reachable{stage.crew.formation(), "there"});
  stage.crew.hear(2, Formed{stage.crew.formation()});
}

TEST(MeshCrew, WhoWasHandedTheStateIsASourceThoughTheFormationNeverStood) {
  MeshStage stage;
  train_one_and_hand_over(stage);
  stage.crew.gone(1);
  ASSERT_TRUE(stage.crew.assign(side_by_side(3, {3, 2}, 8)));
  EXPECT_EQ(stage.last<Form>(3).source, 1);
  EXPECT_EQ(stage.last<Form>(3).receivers, (std::vector<int>{0}));
}

TEST(MeshCrew, WhoWentBeforeItsStepWasCommittedHoldsNothing) {
  MeshStage stage;
  for (const WorkerId worker : {1, 2}) stage.crew.arrived(worker, {.sample = 0});
  ASSERT_TRUE(stage.crew.assign(side_by_side(1, {1, 2}, 0)));
  stage.crew.go_on(100);
  stage.stand();
  EXPECT_FALSE(stage.crew.hear(1, stage.report()));
  stage.crew.gone(1);
  ASSERT_TRUE(stage.crew.hear(2, stage.report()));
  stage.crew.commit();
  EXPECT_FALSE(stage.crew.alive(1));
  EXPECT_TRUE(stage.crew.needed(2));
}

TEST(MeshCrew, WhoAloneHoldsTheStateIsNeeded) {
  MeshStage stage;
  stage.crew.arrived(1, {.sample = 0});
  EXPECT_FALSE(stage.crew.needed(1));  // nothing is trained
  train_one_and_hand_over(stage);      // to 2, not to 3
  EXPECT_FALSE(stage.crew.needed(1));
  EXPECT_FALSE(stage.crew.needed(3));
  stage.crew.gone(2);
  EXPECT_TRUE(stage.crew.needed(1));
}

// 1 and 2 hold 8 samples; the run falls back to none, and 3 trains the same 8 again, by itself. Its weights are others.
TEST(MeshCrew, WhatWasHeldBeforeARollBackIsNoStateOfTheNewHistory) {
  MeshStage stage;
  train_one_and_hand_over(stage);
  ASSERT_TRUE(stage.crew.assign(side_by_side(3, {3}, 8)));
  stage.crew.roll_back("", 0, {});
  stage.stand();
  stage.crew.go_on(100);
  ASSERT_TRUE(stage.crew.hear(3, stage.report()));
  stage.crew.commit();
  ASSERT_TRUE(stage.crew.assign(side_by_side(4, {1, 2, 3}, 8)));
  EXPECT_EQ(stage.last<Form>(1).source, 2);
  EXPECT_EQ(stage.last<Form>(1).receivers, (std::vector<int>{0, 1}));
}

// At once when they stand together, and then after 1 s of training: eight steps of 0.125 s.
TEST(MeshCrew, ComparesWhatWorkersHoldNowAndThen) {
  MeshStage stage;
  stage.begin({1, 2});
  std::vector<int> compared;
  std::optional<Crew::Step> step;
  for (int number = 0; number < 12; ++number) {
    StepDone report = stage.report();
    report.compute_s = 0.125;
    if (stage.last<Proceed>(1).compare) {
      compared.push_back(number);
      report.state = {"fc.weight 01", "fc.bias 02"};
    }
    stage.crew.hear(1, report);
    if (report.state && number > 0) (*report.state)[1] = "fc.bias 03";
    step = stage.crew.hear(2, report);
    ASSERT_TRUE(step);
    if (step->drift) break;
    stage.crew.commit();
    stage.crew.go_on(1000);
  }
  EXPECT_EQ(compared, (std::vector<int>{0, 9}));
  EXPECT_EQ(step->drift.value_or(""),
            "the workers do not hold the same: at sample 72, fc.bias is 02 at w1 and 03 at w2; at sample 0 they held "
            "the same");
}

TEST(MeshCrew, AWorkerAloneComparesNothing) {
  MeshStage stage;
  stage.begin({1});
  EXPECT_FALSE(stage.last<Proceed>(1).compare);
}

// Two hold the state when a third is lost and both are told to go: one of them stands alone and saves it.
TEST(MeshCrew, OneThatHoldsTheStateSavesItWhenNobodyTrains) {
  MeshStage stage;
  stage.begin({1, 2, 3});
  for (const WorkerId worker : {1, 2, 3}) stage.crew.hear(worker, stage.report());
  stage.crew.commit();
  stage.crew.gone(2);
  EXPECT_FALSE(stage.crew.write_checkpoint());
  stage.crew.pause();
  ASSERT_EQ(stage.crew.ranks(), std::vector<WorkerId>{1});
  stage.crew.gone(1);  // nor has this one time for it
  ASSERT_EQ(stage.crew.ranks(), std::vector<WorkerId>{3});
  const auto form = stage.last<Form>(3);
  EXPECT_EQ(form.size, 1);
  EXPECT_EQ(form.sample, 8);
  stage.stand();
  EXPECT_EQ(stage.last<WriteCheckpoint>(3).formation, stage.crew.formation());
  stage.crew.hear(3, CheckpointWritten{.sample = 8});
  EXPECT_TRUE(stage.crew.ranks().empty());
}

}  // namespace
}  // namespace mayfly
