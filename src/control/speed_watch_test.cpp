#include "control/speed_watch.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace mayfly {
namespace {

/// Steps of ten samples that should take 0.9 s of computing and 0.1 s of exchange, so 10 samples/s.
constexpr PredictedSpeed kTen{.samples_per_s = 10, .compute_s_per_sample = 0.09, .exchange_s_per_sample = 0.01};

/// A generation that is told its steps one after the other.
struct Watched {
  explicit Watched(const PredictedSpeed& predicted = kTen) { watch.begin(predicted); }

  /// Trains for so long with steps of these parts, and what is left for `rest`.
  void train(double span, double compute, double exchange, double commit = 0, double rest = 0) {
    const double whole = compute + exchange + commit + rest;
    for (const double end = now + span; now + whole <= end + 1e-9;) {
      now += whole;
      watch.saw({Seconds(now), 10, Seconds(compute), Seconds(exchange), Seconds(commit)});
    }
  }
  SpeedWatch watch{};
  double now = 0;
};

// The first step ends at 1 s, so the warm-up at 31 s, and the first window that is full at 61 s.
TEST(SpeedWatch, SaysNothingBeforeItIsWarm) {
  Watched run;
  run.train(60, 0.9, 0.1);
  EXPECT_FALSE(run.watch.ratio().has_value());
  run.train(3, 0.9, 0.1);
  ASSERT_TRUE(run.watch.ratio().has_value());
  EXPECT_NEAR(*run.watch.ratio(), 1, 1e-9);
}

TEST(SpeedWatch, ForgetsTheStepsOfTheWarmUp) {
  Watched run;
  run.train(20, 4, 1);
  run.train(80, 0.9, 0.1);
  EXPECT_NEAR(*run.watch.ratio(), 1, 1e-9);
}

// Ten samples in 2 s are half of what was predicted.
TEST(SpeedWatch, MeasuresTheLastWindow) {
  Watched run;
  run.train(100, 0.9, 0.1);
  run.train(40, 1.9, 0.1);
  EXPECT_NEAR(*run.watch.ratio(), 0.5, 1e-9);
}

TEST(SpeedWatch, NamesNoBottleneckForAHiccup) {
  Watched run;
  run.train(100, 0.9, 0.1);
  run.train(20, 19.9, 0.1);  // one step
  EXPECT_LT(*run.watch.ratio(), 0.7);
  for (int second = 0; second < 100; ++second) {
    run.train(1, 0.9, 0.1);
    EXPECT_FALSE(run.watch.bottleneck().has_value()) << second;
  }
}

// 5 % slower is within CM-DARE's 6.7 %, 10 % is not.
TEST(SpeedWatch, NamesABottleneckBeyondTheGapOnly) {
  Watched within;
  within.train(300, 0.95, 0.1);
  EXPECT_FALSE(within.watch.bottleneck().has_value());
  Watched beyond;
  beyond.train(300, 1.0, 0.1111);
  EXPECT_TRUE(beyond.watch.bottleneck().has_value());
}

TEST(SpeedWatch, NamesThePartThatIsSlowerThanPredicted) {
  const auto part = [](double compute, double exchange, double commit, double rest) {
    Watched run;
    run.train(300, compute, exchange, commit, rest);
    const auto found = run.watch.bottleneck();
    return found ? name(found->part) : "none";
  };
  EXPECT_EQ(part(1.9, 0.1, 0, 0), "compute");
  EXPECT_EQ(part(0.9, 0.6, 0.1, 0.1), "worker-network");
  EXPECT_EQ(part(0.9, 0.1, 0.5, 0.1), "controller");
  EXPECT_EQ(part(0.9, 0.1, 0.1, 0.5), "fetch");
  EXPECT_EQ(part(0.8, 0.1, 0, 0), "none");
}

// Nothing but the speed is predicted: 1 s of a step is computing, whatever is exchanged is beyond it.
TEST(SpeedWatch, TakesWhatIsNotPredictedForComputing) {
  Watched run({.samples_per_s = 10});
  run.train(300, 0.9, 0.7);
  const auto found = run.watch.bottleneck();
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->part, Bottleneck::Part::worker_network);
  EXPECT_NEAR(found->ratio, 1 / 1.6, 1e-9);
}

TEST(SpeedWatch, StartsAnewWithAGeneration) {
  Watched run;
  run.train(300, 1.9, 0.1);
  ASSERT_TRUE(run.watch.bottleneck().has_value());
  run.watch.begin(kTen);
  EXPECT_FALSE(run.watch.ratio().has_value());
  EXPECT_FALSE(run.watch.bottleneck().has_value());
  run.now += 500;  // a long change is not a slow step
  run.train(100, 0.9, 0.1);
  EXPECT_NEAR(*run.watch.ratio(), 1, 1e-9);
}

TEST(SpeedWatch, HasNoRatioWhereNothingWasPredicted) {
  Watched run(PredictedSpeed{});
  run.train(300, 0.9, 0.1);
  EXPECT_FALSE(run.watch.ratio().has_value());
}

// 0.9 s + 0.5 s + 0.1 s a step: 10 / 1.5 of 10 samples/s.
TEST(Bottleneck, IsToldInWordsWithItsNumbers) {
  Watched run;
  run.train(300, 0.9, 0.5, 0.1);
  EXPECT_EQ(sentence(*run.watch.bottleneck()),
            "measured speed is 0.67 of the predicted: worker-network takes 0.5 s of a step, predicted 0.1 s");
}

}  // namespace
}  // namespace mayfly
