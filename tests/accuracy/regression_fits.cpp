#include "accuracy/regression_fits.h"

#include <cmath>
#include <set>
#include <vector>

#include "base/least_squares.h"

namespace mayfly {
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

}  // namespace mayfly
