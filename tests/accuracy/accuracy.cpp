#include "accuracy/accuracy.h"

#include <cmath>

#include "base/least_squares.h"

namespace mayfly {

const std::array<ScalingCurve, 12>& cm_dare_curves() {
  // Parameters: 693,818, 1,857,722, 2,926,986 and 26,204,362 of 4 bytes.
  constexpr double kResNet15 = 4 * 693818.0;
  constexpr double kResNet32 = 4 * 1857722.0;
  constexpr double kShakeSmall = 4 * 2926986.0;
  constexpr double kShakeBig = 4 * 26204362.0;
  static const std::array<ScalingCurve, 12> curves{{
      {"K80, 1 server, ResNet-15", 1, kResNet15, {9.87, 18.91, 28.55, 38.03, 46.8, 57.3, 65.46, 75.81}},
      {"K80, 1 server, ResNet-32", 1, kResNet32, {4.51, 9.06, 13.53, 18.13, 22.54, 26.91, 31.41, 36.02}},
      {"K80, 1 server, Shake small", 1, kShakeSmall, {2.53, 5.09, 7.61, 10.05, 12.58, 15.01, 17.38, 19.84}},
      {"K80, 1 server, Shake big", 1, kShakeBig, {.68, 1.34, 2.05, 2.64, 3.32, 3.97, 4.37, 5.02}},
      {"P100, 1 server, ResNet-15", 1, kResNet15, {20.9, 47.1, 62.13, 78.72, 93.27, 96.12, 97.45, 103.69}},
      {"P100, 1 server, ResNet-32", 1, kResNet32, {11.36, 22.54, 34.58, 40.8, 44.63, 44.23, 47.43, 43.15}},
      {"P100, 1 server, Shake small", 1, kShakeSmall, {6.72, 13.62, 19.52, 24.83, 27.05, 27.44, 28.27, 26.95}},
      {"P100, 1 server, Shake big", 1, kShakeBig, {2.1, 3.96, 4.93, 6.01, 6.15, 5.99, 6.1, 6.52}},
      {"P100, 2 servers, ResNet-15", 2, kResNet15, {25.93, 46.55, 70.38, 98.77, 120.19, 145.66, 163.43, 176.67}},
      {"P100, 2 servers, ResNet-32", 2, kResNet32, {12.47, 25.39, 40.21, 50.13, 65.06, 72.96, 80.23, 75.66}},
      {"P100, 2 servers, Shake small", 2, kShakeSmall, {7.33, 14.41, 21.32, 28.07, 32.34, 33.37, 35.96, 34.25}},
      {"P100, 2 servers, Shake big", 2, kShakeBig, {2.18, 4.22, 5.68, 6.37, 6.49, 6.69, 6.04, 6.54}},
  }};
  return curves;
}

double Calibration::steps_per_s(Predictor predictor, int workers) const {
  const Group group{.worker = &worker, .count = workers};
  return cluster_speed(predictor, job, {&group, 1}, servers).updates_per_s;
}

namespace {

constexpr std::array kCalibrated{1, 2, 8};
/// Google's limit for the 4-vCPU servers of the measurements: 2 Gbit/s per vCPU.
constexpr double kServerLink = 1e9;

/// What a model's two free numbers (compute seconds, exchange seconds of one worker) mean to it.
Calibration interpretation(Predictor predictor, const ScalingCurve& curve, double compute, double exchange) {
  Calibration c{.job = {.parameters = curve.parameters},
                .worker = {.compute = compute, .batch = 128},
                .servers = {.count = 1, .cores = 4}};
  const double link = 2 * curve.parameters / exchange;
  c.worker.rate = c.worker.nic = link;
  c.servers.nic = link;
  switch (predictor) {
    case Predictor::queue:
      // The server is busy `exchange` seconds per update; the way there takes no time of its own.
      c.job.server_demand = exchange;
      c.servers.nic = c.worker.rate = 1e18;
      break;
    case Predictor::cynthia:
      c.job.cynthia = CynthiaProfile{.work_gflop = compute};
      c.worker.gflops = 1;
      break;
    default:
      break;
  }
  return c;
}

/// spotDNN's own procedure: with the server's link known, the contention probability at 2 and 8 workers gives the line.
Result<Calibration> calibrate_spotdnn(const ScalingCurve& curve) {
  const double link = kServerLink * curve.servers;
  const double alone = 2 * curve.parameters / link;
  Calibration c{.job = {.parameters = curve.parameters},
                .worker = {.batch = 128, .rate = link},
                .servers = {.count = 1, .nic = link}};
  c.worker.compute = 1 / curve.steps_per_s[0] - alone;
  if (c.worker.compute <= 0) return fail("{}: one step is shorter than its exchange", curve.name);
  const auto contention = [&](int n) {
    const double cycle = n / curve.steps_per_s[static_cast<std::size_t>(n - 1)];
    const double exchange = std::max(alone, cycle - c.worker.compute);
    const double granted = 2 * curve.parameters / exchange;
    return std::clamp((link - granted) / (link - link / n), 0.0, 1.0);
  };
  const double at2 = contention(2);
  const double at8 = contention(8);
  const double slope = std::max(1e-9, (at8 - at2) / (std::sqrt(8.0) - std::sqrt(2.0)));
  c.job.contention = ContentionFit{.slope = slope, .offset = at2 - slope * std::sqrt(2.0)};
  return c;
}

}  // namespace

Result<Calibration> calibrate(Predictor predictor, const ScalingCurve& curve) {
  if (predictor == Predictor::spotdnn) return calibrate_spotdnn(curve);
  const double one = 1 / curve.steps_per_s[0];
  FitProblem problem{.start = {std::log(one * 0.8), std::log(one * 0.2)}, .residuals = kCalibrated.size()};
  problem.evaluate = [&](std::span<const double> x, std::span<double> out) {
    const auto c = interpretation(predictor, curve, std::exp(x[0]), std::exp(x[1]));
    for (std::size_t i = 0; i < kCalibrated.size(); ++i) {
      const double predicted = c.steps_per_s(predictor, kCalibrated[i]);
      out[i] = std::log(predicted / curve.steps_per_s[static_cast<std::size_t>(kCalibrated[i] - 1)]);
    }
  };
  // Without contention in the data the exchange is not identified and may vanish.
  problem.lower = {std::log(one * 1e-3), std::log(one * 1e-6)};
  problem.upper = {std::log(one * 10), std::log(one * 10)};
  const auto fit = nonlinear_least_squares(problem);
  if (!fit) return unexpected(fit.error());
  return interpretation(predictor, curve, std::exp(fit->x[0]), std::exp(fit->x[1]));
}

Result<std::vector<CurveError>> held_out_errors(Predictor predictor) {
  std::vector<CurveError> errors;
  for (const ScalingCurve& curve : cm_dare_curves()) {
    const auto c = calibrate(predictor, curve);
    if (!c) return unexpected(c.error());
    CurveError error{.curve = curve.name};
    constexpr int kHeldOut = 5;
    for (int n = 3; n <= 7; ++n) {
      const double ratio = c->steps_per_s(predictor, n) / curve.steps_per_s[static_cast<std::size_t>(n - 1)];
      error.mean += std::fabs(ratio - 1) / kHeldOut;
      error.squared += std::log(ratio) * std::log(ratio) / kHeldOut;
    }
    errors.push_back(error);
  }
  return errors;
}

Result<Transfer> v100_transfer() {
  // "Speeding up Deep Learning with Transient Servers" (ICAC 2019): hours for 64,000 steps of ResNet-32 on 2 to 8 V100
  // and one server; CM-DARE: 15.615 steps/s on one V100.
  constexpr std::array kHours{.6729, .5110, .4507, .4176, .4207, .3811, .3954};
  constexpr double kAlone = 15.615;
  auto c = calibrate(Predictor::queue, cm_dare_curves()[5]);
  if (!c) return unexpected(c.error());
  c->worker.compute = 1 / kAlone - c->job.server_demand;
  Transfer transfer;
  for (std::size_t i = 0; i < kHours.size(); ++i) {
    transfer.measured[i] = 64000 / (3600 * kHours[i]);
    transfer.predicted[i] = c->steps_per_s(Predictor::queue, static_cast<int>(i) + 2);
    const double error = std::fabs(transfer.predicted[i] / transfer.measured[i] - 1);
    transfer.mean += error / static_cast<double>(kHours.size());
    transfer.worst = std::max(transfer.worst, error);
  }
  return transfer;
}

const std::array<FunctionObservation, 15>& lambda_observations() {
  // lambdaDNN (IEEE Transactions on Computers 71(2), 2022), Fig. 8 and 9, observed means, read off the figures.
  static const std::array<FunctionObservation, 15> observations{{
      {"lambda-1dcnn", 8, 960, 3, 71.64},
      {"lambda-1dcnn", 8, 1472, 3, 48.85},
      {"lambda-1dcnn", 8, 1984, 3, 38.68},
      {"lambda-1dcnn", 8, 2496, 3, 32.96},
      {"lambda-1dcnn", 8, 3008, 3, 29.64},
      {"lambda-resnet50", 8, 2496, 1, 526.19},
      {"lambda-resnet50", 8, 2624, 1, 513.01},
      {"lambda-resnet50", 8, 2752, 1, 502.92},
      {"lambda-resnet50", 8, 2880, 1, 479.27},
      {"lambda-resnet50", 8, 3008, 1, 466.32},
      {"lambda-mobilenet", 4, 3008, 3, 664.45},
      {"lambda-mobilenet", 6, 3008, 3, 453.57},
      {"lambda-mobilenet", 8, 3008, 3, 363.81},
      {"lambda-mobilenet", 10, 3008, 3, 314.04},
      {"lambda-mobilenet", 12, 3008, 3, 271.33},
  }};
  return observations;
}

}  // namespace mayfly
