#include "predict/regression.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/least_squares.h"

namespace mayfly {

double step_time(const StepTimeFit& fit, double gflops, double tensors, double tflops) {
  return fit.intercept + (fit.per_work * gflops + fit.per_tensor * tensors) / tflops;
}

namespace {

Result<StepTimeFit> fit_without(std::span<const StepObservation> observations, int left_out) {
  std::vector<double> rows;
  std::vector<double> targets;
  for (const auto& o : observations) {
    if (o.network == left_out) continue;
    rows.insert(rows.end(), {1.0, o.gflops / o.tflops, o.tensors / o.tflops});
    targets.push_back(o.step);
  }
  const auto x = linear_least_squares(rows, 3, targets);
  if (!x) return unexpected(x.error());
  return StepTimeFit{.intercept = (*x)[0], .per_work = (*x)[1], .per_tensor = (*x)[2]};
}

constexpr int kNone = -1;

}  // namespace

Result<StepTimeFit> fit_step_time(std::span<const StepObservation> observations, double batch) {
  auto fit = fit_without(observations, kNone);
  if (!fit) return fit;
  std::set<int> networks;
  for (const auto& o : observations) networks.insert(o.network);
  double absolute = 0;
  double squared = 0;
  for (const int network : networks) {
    const auto others = fit_without(observations, network);
    if (!others) return others;
    for (const auto& o : observations) {
      if (o.network != network) continue;
      const double error = step_time(*others, o.gflops, o.tensors, o.tflops) / o.step - 1;
      absolute += std::fabs(error);
      squared += error * error;
    }
  }
  const auto count = static_cast<double>(observations.size());
  fit->left_out_mape = absolute / count;
  fit->relative_sd = std::sqrt(squared / count);
  fit->batch = batch;
  return fit;
}

const StepTimeFit& published_step_time_fit() {
  // fit_step_time over CM-DARE's step_speed.csv (ICDCS 2020, Apache-2.0); regression_test.cpp repeats the fit.
  static const StepTimeFit fit{.intercept = -0.0121872,
                               .per_work = 0.229198,
                               .per_tensor = 0.00493365,
                               .batch = 128,
                               .relative_sd = 0.1511,
                               .left_out_mape = 0.1105};
  return fit;
}

Seconds checkpoint_time(const CheckpointFit& fit, double data_mb, double graph_mb) {
  return Seconds(fit.intercept + fit.per_data_mb * data_mb + fit.per_graph_mb * graph_mb);
}

Result<CheckpointFit> fit_checkpoint_time(std::span<const CheckpointObservation> observations) {
  std::vector<double> rows;
  std::vector<double> targets;
  for (const auto& o : observations) {
    rows.insert(rows.end(), {1.0, o.data_mb, o.graph_mb});
    targets.push_back(o.time);
  }
  const auto x = linear_least_squares(rows, 3, targets);
  if (!x) return unexpected(x.error());
  CheckpointFit fit{.intercept = (*x)[0], .per_data_mb = (*x)[1], .per_graph_mb = (*x)[2]};
  for (const auto& o : observations) {
    fit.mape += std::fabs(checkpoint_time(fit, o.data_mb, o.graph_mb).count() / o.time - 1);
  }
  fit.mape /= static_cast<double>(observations.size());
  return fit;
}

const CheckpointFit& published_checkpoint_fit() {
  // fit_checkpoint_time over CM-DARE's checkpoint.csv (C3 of the specification's list).
  static const CheckpointFit fit{
      .intercept = 3.21867, .per_data_mb = 0.0176086, .per_graph_mb = 0.186405, .mape = 0.0632};
  return fit;
}

}  // namespace mayfly
