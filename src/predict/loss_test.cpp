#include "predict/loss_fit.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>

namespace mayfly {
namespace {

constexpr LossCurve kResNet110{
    .form = LossCurve::Form::spotdnn, .shift = 876.5, .batch_slope = -0.2, .scale = 2507.6, .floor = 0.5};

TEST(Loss, StepsAndLossAreInverse) {
  for (const auto form : {LossCurve::Form::spotdnn, LossCurve::Form::cynthia, LossCurve::Form::common_start}) {
    LossCurve curve = kResNet110;
    curve.form = form;
    curve.initial = 5;
    const LossConditions at{.batch = 1400, .workers = 8, .cc = .88};
    const double steps = *steps_to_loss(curve, at, .8);
    EXPECT_NEAR(loss_after(curve, at, steps), .8, 1e-12);
  }
}

TEST(Loss, FiveCoefficientsAddTheConvergenceCoefficient) {
  LossCurve curve = kResNet110;
  curve.cc_offset = 1 - .88;  // (R + gamma4) = 1: the four-coefficient form again
  const LossConditions at{.batch = 1400, .workers = 8, .cc = .88};
  EXPECT_NEAR(*steps_to_loss(curve, at, .8), *steps_to_loss(kResNet110, at, .8), 1e-6);
  curve.cc_offset = 4 - .88;
  EXPECT_NEAR(*steps_to_loss(curve, at, .8) + 876.5, 2 * (*steps_to_loss(kResNet110, at, .8) + 876.5), 1e-6);
}

TEST(Loss, SaysNothingWhereTheCurveDoesNot) {
  const LossConditions at{.batch = 1024, .workers = 4};
  EXPECT_FALSE(steps_to_loss(kResNet110, at, .5));
  EXPECT_FALSE(steps_to_loss(kResNet110, at, .4));
  // gamma2 b + gamma3 falls below zero beyond a batch of 12,538.
  EXPECT_FALSE(steps_to_loss(kResNet110, {.batch = 12539, .workers = 4}, .8));
  LossCurve fitted = kResNet110;
  fitted.batch_max = 8192;
  EXPECT_FALSE(steps_to_loss(fitted, {.batch = 9000, .workers = 1}, .8));
}

// The initial loss of spotDNN's form depends on the cluster: 3.13 for one worker with batch 1024, 7.55 for eight with
// 1608.
TEST(Loss, CommonStartDoesNotDependOnTheCluster) {
  EXPECT_NEAR(loss_after(kResNet110, {.batch = 1024, .workers = 1}, 0), 3.13, .005);
  EXPECT_NEAR(loss_after(kResNet110, {.batch = 1608, .workers = 8}, 0), 7.55, .005);
  LossCurve ours = kResNet110;
  ours.form = LossCurve::Form::common_start;
  ours.initial = 4.95;
  EXPECT_DOUBLE_EQ(loss_after(ours, {.batch = 1024, .workers = 1}, 0), 4.95);
  EXPECT_DOUBLE_EQ(loss_after(ours, {.batch = 1608, .workers = 8}, 0), 4.95);
}

// spotDNN Fig. 3, ResNet-50 on CIFAR-100, every 400 iterations; each is the hyperbola K / (j + K / 4.95).
TEST(LossFit, FindsTheHyperbolasOfTheMotivationFigure) {
  struct Curve {
    double amplitude;
    std::array<double, 18> loss;
  };
  const std::array<Curve, 3> curves{{
      {20185,
       {4.973, 4.527, 4.155, 3.839, 3.568, 3.332, 3.126, 2.944, 2.782, 2.636, 2.506, 2.387, 2.280, 2.181, 2.091, 2.008,
        1.931, 1.860}},
      {15663,
       {4.955, 4.398, 3.954, 3.591, 3.288, 3.033, 2.815, 2.626, 2.461, 2.315, 2.186, 2.070, 1.966, 1.872, 1.786, 1.708,
        1.637, 1.571}},
      {10403,
       {4.955, 4.164, 3.590, 3.156, 2.815, 2.540, 2.315, 2.126, 1.966, 1.828, 1.708, 1.603, 1.510, 1.428, 1.353, 1.287,
        1.226, 1.171}},
  }};
  for (const auto& curve : curves) {
    std::vector<LossPoint> points;
    for (std::size_t i = 0; i < curve.loss.size(); ++i)
      points.push_back({.step = 400.0 * static_cast<double>(i), .loss = curve.loss[i]});
    const auto fit = fit_loss(LossCurve::Form::common_start, points, Sync::asp);
    ASSERT_TRUE(fit.has_value());
    EXPECT_NEAR(fit->curve.initial, 4.95, .03);
    EXPECT_NEAR(fit->curve.floor, 0, .02);
    EXPECT_NEAR(fit->curve.scale, curve.amplitude, .02 * curve.amplitude);
    EXPECT_LT(fit->residual_sd, .01);
  }
}

TEST(LossFit, BandCoversHeldOutPointsAsOftenAsItSays) {
  // 200 noisy logs of a known curve; the band at twice the log's length should hold the noisy truth about 8 times
  // in 10.
  const LossCurve truth{.form = LossCurve::Form::common_start, .scale = 3000, .floor = .4, .initial = 4};
  const LossConditions at{.batch = 256, .workers = 1};
  std::mt19937_64 random(5);
  int covered = 0;
  constexpr int kLogs = 200;
  for (int log = 0; log < kLogs; ++log) {
    const auto noise = [&] {
      double sum = 0;
      for (int i = 0; i < 12; ++i) sum += static_cast<double>(random() % 1000000) / 1e6;
      return .02 * (sum - 6);
    };
    std::vector<LossPoint> points;
    for (int i = 0; i < 60; ++i)
      points.push_back({.step = 50.0 * i, .loss = loss_after(truth, at, 50.0 * i) + noise(), .batch = 256});
    const auto fit = fit_loss(LossCurve::Form::common_start, points, Sync::asp);
    ASSERT_TRUE(fit.has_value());
    const auto band = loss_band(*fit, at, 6000);
    const double seen = loss_after(truth, at, 6000) + noise();
    covered += seen >= band.p10 && seen <= band.p90 ? 1 : 0;
  }
  EXPECT_GE(covered, static_cast<int>(.72 * kLogs));
  EXPECT_LE(covered, static_cast<int>(.88 * kLogs));
}

TEST(LossFit, WidensAsItExtrapolates) {
  std::vector<LossPoint> points;
  for (int i = 1; i <= 30; ++i)
    points.push_back({.step = 100.0 * i, .loss = 1 + 500.0 / (100.0 * i + 200) + (i % 2 == 0 ? .01 : -.01)});
  const auto fit = fit_loss(LossCurve::Form::spotdnn, points, Sync::asp);
  ASSERT_TRUE(fit.has_value());
  const auto near = loss_band(*fit, {}, 1500);
  const auto far = loss_band(*fit, {}, 100000);
  EXPECT_GT(far.p90 - far.p10, near.p90 - near.p10);
  EXPECT_GT(fit->curve.relative_sd, 0);
}

// Asynchronously, K = 300 n^p: eight workers need 2.83 times the steps of one if p is 0.5, as many if it is 0.
TEST(LossFit, TellsWhatMoreWorkersCostFromLossesOfOneAndFour) {
  for (const double power : {0.0, 0.2, 0.5}) {
    const LossCurve truth{
        .form = LossCurve::Form::common_start, .scale = 300, .floor = .1, .initial = 2.3, .workers_power = power};
    std::vector<LossPoint> points;
    for (const int workers : {1, 4}) {
      for (int i = 1; i <= 40; ++i)
        points.push_back({.step = 10.0 * i,
                          .loss = loss_after(truth, {.batch = 128, .workers = workers}, 10.0 * i),
                          .batch = 128,
                          .workers = workers});
    }
    const auto fit = fit_loss(LossCurve::Form::common_start, points, Sync::asp);
    ASSERT_TRUE(fit.has_value());
    ASSERT_TRUE(fit->curve.workers_power);
    EXPECT_NEAR(*fit->curve.workers_power, power, .01);
    const LossConditions eight{.batch = 128, .workers = 8};
    EXPECT_NEAR(*steps_to_loss(fit->curve, eight, .5) / *steps_to_loss(truth, eight, .5), 1, .02);
  }
}

TEST(LossCurves, WithABarrierOnlyTheBatchTellsOneWorkerFromMany) {
  const LossCurve curve{.form = LossCurve::Form::common_start, .scale = 300, .floor = .1, .initial = 2.3};
  const auto steps = [&](int workers, Sync sync) {
    return *steps_to_loss(curve, {.batch = 512, .workers = workers, .sync = sync}, .5);
  };
  EXPECT_DOUBLE_EQ(steps(4, Sync::bsp), steps(1, Sync::bsp));
  EXPECT_DOUBLE_EQ(steps(4, Sync::asp), 2 * steps(1, Sync::asp));
}

TEST(LossFit, RefusesTooFewPoints) {
  const std::vector<LossPoint> points{{0, 5}, {1, 4}, {2, 3}};
  EXPECT_FALSE(fit_loss(LossCurve::Form::common_start, points, Sync::asp));
}

TEST(LossLog, NamesTheLineThatIsWrong) {
  EXPECT_EQ(parse_loss_log("step,loss\n1,2\n2,x\n", "log.csv").error().message, "log.csv:3: loss: 'x', want a number");
  EXPECT_EQ(parse_loss_log("step\n1\n", "log.csv").error().message, "log.csv:1: no column 'loss' in the heading");
  EXPECT_EQ(parse_loss_log("", "log.csv").error().message, "log.csv:1: empty file");
  EXPECT_EQ(parse_loss_log("loss,step,workers\n3,1,4\n", "log.csv")->at(0).workers, 4);
}

}  // namespace
}  // namespace mayfly
