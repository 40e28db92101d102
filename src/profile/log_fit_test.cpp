#include "profile/log_fit.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "job/profile.h"

namespace mayfly {
namespace {

// Logs made by tests/logs/make.py: 0.12 s a step after the first hundred, loss from 2.3 towards 0.2.
LogProfile learnt(const std::string& file, FromLog asked = {}) {
  const std::string path = std::string(MAYFLY_SOURCE_DIR) + "/tests/logs/" + file;
  const auto text = load_text(path);
  EXPECT_TRUE(text);
  auto log = parse_training_log(*text, file);
  EXPECT_TRUE(log) << log.error().message;
  asked.file = file;
  asked.name = file;
  if (!asked.batch) asked.batch = 64;
  auto found = profile_from_log(*std::move(log), asked);
  EXPECT_TRUE(found) << found.error().message;
  return found ? *found : LogProfile{};
}

void expect_the_training(const LogProfile& found, double tolerance) {
  EXPECT_NEAR(found.step.mean.count(), 0.12, tolerance);
  ASSERT_TRUE(found.fit);
  EXPECT_NEAR(found.fit->curve.initial, 2.3, 0.02);
  EXPECT_NEAR(found.fit->curve.floor, 0.2, 0.02);
  const auto profile = parse_profile(found.profile.dump(), "profile.json");
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(profile->types.at("local").basis, Basis::measured);
  EXPECT_EQ(profile->types.at("local").batch, 64);
}

TEST(ProfileFromLog, TensorBoardCsv) {
  const auto found = learnt("tensorboard.csv");
  expect_the_training(found, 0.0001);
  EXPECT_EQ(found.step.stalls, 1);  // the pause of a minute
  ASSERT_TRUE(found.step.p10 && found.step.p90);
  EXPECT_LE(found.step.p10->count(), found.step.p90->count());
}
TEST(ProfileFromLog, LightningCsvWithEmptyCellsAndValidation) { expect_the_training(learnt("metrics.csv"), 0.0001); }
TEST(ProfileFromLog, WandbCsvWithQuotes) { expect_the_training(learnt("wandb.csv"), 0.0001); }
TEST(ProfileFromLog, JsonLines) { expect_the_training(learnt("metrics.jsonl"), 0.0001); }
TEST(ProfileFromLog, ProgressBarInWholeSeconds) { expect_the_training(learnt("bar.log"), 0.002); }

TEST(ProfileFromLog, LinesWithARestartCountStepsOnce) {
  const auto found = learnt("lines.log");
  expect_the_training(found, 0.0001);
  EXPECT_EQ(found.losses, 60U);  // 50, 100 ... 3000
}

TEST(ProfileFromLog, SamplesOfAnEpochBecomeSteps) {
  const auto found = learnt("mnist.log");
  expect_the_training(found, 0.001);
  EXPECT_EQ(found.profile["job"]["samples"], 64000);
}

// train_runtime is of everything: 372 s for 3000 steps.
TEST(ProfileFromLog, TrainerStateHasOneFigureForTheSpeed) {
  const auto found = learnt("trainer_state.json");
  EXPECT_NEAR(found.step.mean.count(), 0.124, 1e-9);
  EXPECT_EQ(found.step.relative_sd, 0);
  EXPECT_EQ(found.profile["types"]["local"]["batch"], 64);
}

TEST(ProfileFromLog, TooFewLossesAreAnErrorThatSaysHowMany) {
  auto log = parse_training_log("step 1 loss 2 0.1 s/it\nstep 2 loss 1 0.1 s/it\n", "short.log");
  ASSERT_TRUE(log);
  const auto found = profile_from_log(*log, {.file = "short.log", .batch = 8});
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().message,
            "short.log: 2 lines with a step and a loss, want at least 8 for a loss curve (or --no-loss)");
  const auto without = profile_from_log(*log, {.file = "short.log", .batch = 8, .loss = false});
  ASSERT_TRUE(without);
  EXPECT_DOUBLE_EQ(without->step.mean.count(), 0.1);
}

TEST(ProfileFromLog, WhatTheLogDoesNotTellIsAskedFor) {
  auto log = parse_training_log("step 1 loss 2\nstep 2 loss 1\n", "dumb.log");
  ASSERT_TRUE(log);
  const auto no_batch = profile_from_log(*log, {.file = "dumb.log"});
  ASSERT_FALSE(no_batch);
  EXPECT_NE(no_batch.error().message.find("give --batch"), std::string::npos);
  const auto no_time = profile_from_log(*log, {.file = "dumb.log", .batch = 8});
  ASSERT_FALSE(no_time);
  EXPECT_NE(no_time.error().message.find("tells no speed"), std::string::npos);
}

// Times 1 1 1 1 1 1 1 1 1 (9 intervals of one step); the clock goes back once, the step once.
TEST(StepTimes, WhatGoesBackIsARestartAndNoTime) {
  std::string text = "step,loss,elapsed\n";
  for (const auto& [step, time] :
       {std::pair{1, 1}, {2, 2}, {3, 3}, {4, 4}, {5, 0}, {6, 1}, {7, 2}, {4, 3}, {5, 4}, {6, 5}})
    text += fmt::format("{},1,{}\n", step, time);
  auto log = parse_training_log(text, "m.csv");
  ASSERT_TRUE(log);
  const auto step = step_time(*log, {});
  ASSERT_TRUE(step);
  EXPECT_EQ(step->restarts, 2);
  EXPECT_DOUBLE_EQ(step->mean.count(), 1);
}

}  // namespace
}  // namespace mayfly
