#include "job/log_line.h"

#include <gtest/gtest.h>

#include "job/training_log.h"

namespace mayfly {
namespace {

TEST(LogLine, ReadsStepLossAndTimeOfAStep) {
  const LogPoint want{.step = 100, .loss = 2.31, .step_s = 0.12};
  EXPECT_EQ(parse_log_line("step 100 loss 2.31 0.12 s/it"), want);
  EXPECT_EQ(parse_log_line("Step: 100, Loss: 2.31, 120ms/step"), want);
  EXPECT_EQ(parse_log_line("[train] iter=100 | loss=2.31 | 0.12s/it"), want);
  EXPECT_EQ(parse_log_line(R"({"step": 100, "loss": 2.31, "step_time": 0.12})"), want);
  EXPECT_EQ(parse_log_line("{'step': 100, 'loss': 2.31, 's/it': 0.12}"), want);
}

TEST(LogLine, SamplesOfAnEpochAreToldFromSteps) {
  EXPECT_EQ(parse_log_line("Epoch 1 [640/60000] loss: 0.3"),
            (LogPoint{.epoch = 1, .done = 640, .of = 60000, .done_samples = true, .loss = 0.3}));
  EXPECT_EQ(parse_log_line("Train Epoch: 2 [640/60000 (1%)]\tLoss: 2.278492"),
            (LogPoint{.epoch = 2, .done = 640, .of = 60000, .done_samples = true, .loss = 2.278492}));
  EXPECT_EQ(parse_log_line("Epoch: [0][  10/5005]\tTime  0.123 ( 0.130)\tLoss 6.9e+00 (6.95)"),
            (LogPoint{.epoch = 0, .done = 10, .of = 5005, .loss = 6.9, .time = 0.123}));
}

TEST(LogLine, ReadsAProgressBar) {
  const auto point = parse_log_line(" 10%|#         | 100/1000 [00:12<01:48,  8.00it/s, loss=2.3]");
  EXPECT_EQ(point, (LogPoint{.done = 100, .of = 1000, .loss = 2.3, .clock = 12, .step_s = 0.125}));
}

TEST(LogLine, ATimeInFrontIsAClock) {
  // 2026-01-31 07:10:55 UTC is 1769843455 s after 1970.
  const auto point = parse_log_line("2026-01-31 07:10:55,500 INFO step 7/70 loss 1.5");
  EXPECT_EQ(point, (LogPoint{.step = 7, .of = 70, .loss = 1.5, .clock = 1769843455.5}));
}

TEST(LogLine, MostLinesSayNothing) {
  for (const char* line :
       {"", "loading data ...", "loss of connection", "val_loss 0.3", "step by step", "epoch 3", "{\"step\": \"x\"}",
        "loss nan", "[[[", "1/0", "step -3", "eval loss", "Test set: Average loss: 0.3000, Accuracy: 9000/10000 (90%)"})
    EXPECT_TRUE(parse_log_line(line).empty()) << line;
}

TEST(TrainingLog, AnErrorNamesTheLine) {
  const auto broken = parse_training_log("step,loss\n1,2.3\n2,x\n", "m.csv");
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().message, "m.csv:3: 'x', want a number");
  const auto short_row = parse_training_log("step,loss\n1\n", "m.csv");
  ASSERT_FALSE(short_row);
  EXPECT_EQ(short_row.error().message, "m.csv:2: 1 cells, want 2");
  EXPECT_FALSE(parse_training_log("", "m.csv"));
  EXPECT_FALSE(parse_training_log("nothing to see\n", "m.log"));
  EXPECT_FALSE(parse_training_log(std::string("a\0b", 3), "m.log"));
  EXPECT_FALSE(parse_training_log(R"({"log_history": 3})", "s.json"));
}

// Two epochs of 4 steps each; the second epoch's step 3 is the 7th.
TEST(TrainingLog, StepsOfAnEpochAreCountedFromTheFirst) {
  auto log = parse_training_log("Epoch 1/2\n3/4 - loss: 2.0\nEpoch 2/2\n3/4 - loss: 1.0\n", "keras.log");
  ASSERT_TRUE(log);
  LogScale scale{.batch = 8};
  count_steps(*log, scale);
  ASSERT_EQ(log->points.size(), 2U);
  EXPECT_EQ(log->points[0].step, 3);
  EXPECT_EQ(log->points[1].step, 7);
  EXPECT_EQ(scale.samples, 32);
}

}  // namespace
}  // namespace mayfly
