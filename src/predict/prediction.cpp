#include "predict/prediction.h"

#include <algorithm>
#include <cmath>

#include "base/normal.h"
#include "predict/cycles.h"

namespace mayfly {

std::optional<std::string_view> missing_for(const Target& target, const Profile& profile) {
  if (std::holds_alternative<ToLoss>(target) && !profile.loss) return "a loss curve (block 'loss')";
  if (std::holds_alternative<ForEpochs>(target) && !profile.samples) return "job.samples";
  return std::nullopt;
}

std::optional<double> iterations_for(const Target& target, const Profile& profile, const Speed& speed, int workers,
                                     Sync sync) {
  if (const auto* loss = std::get_if<ToLoss>(&target)) {
    return steps_to_loss(*profile.loss, {.batch = speed.batch, .workers = workers, .cc = speed.cc, .sync = sync},
                         loss->loss);
  }
  if (const auto* epochs = std::get_if<ForEpochs>(&target))
    return epochs->epochs * profile.samples->value / speed.batch;
  return std::get<ForSteps>(target).steps;
}

bool reached(const Target& target, const Target& so_far) {
  if (const auto* loss = std::get_if<ToLoss>(&target)) return std::get<ToLoss>(so_far).loss <= loss->loss;
  if (const auto* epochs = std::get_if<ForEpochs>(&target)) return std::get<ForEpochs>(so_far).epochs >= epochs->epochs;
  return std::get<ForSteps>(so_far).steps >= std::get<ForSteps>(target).steps;
}

std::optional<double> loss_at_start(const Profile& profile, Sync sync) {
  std::optional<double> lowest;
  for (const auto& [type, measured] : profile.types) {
    if (measured.batch <= 0) continue;
    const double start = loss_after(*profile.loss, {.batch = measured.batch, .workers = 1, .sync = sync}, 0);
    if (std::isfinite(start) && (!lowest || start < *lowest)) lowest = start;
  }
  return lowest;
}

Estimate with_band(double middle, double relative_sd) {
  Estimate estimate{.middle = middle};
  if (relative_sd > 0 && std::isfinite(middle)) {
    const double factor = std::exp(kTenthAbove * relative_sd);
    estimate.p10 = middle / factor;
    estimate.p90 = middle * factor;
  }
  return estimate;
}

double model_sd(Predictor predictor) {
  // Root mean square of the logarithmic error over the 60 held-out points of docs/models.md#accuracy (functions: over
  // the 15 published observations there). tests/accuracy recomputes them.
  switch (predictor) {
    case Predictor::queue:
      return 0.0645;
    case Predictor::spotdnn:
      return 0.1205;
    case Predictor::cynthia:
      return 0.1128;
    case Predictor::additive:
      return 0.1667;
    case Predictor::lambda:
      break;
  }
  return 0.0916;
}

double common_sd(Predictor predictor, const Target& target, const Profile& profile) {
  const double curve = std::holds_alternative<ToLoss>(target) && profile.loss ? profile.loss->relative_sd : 0;
  return std::hypot(model_sd(predictor), curve);
}

double relative_sd(Predictor predictor, const Target& target, const Profile& profile, std::span<const Group> groups,
                   const Speed& speed) {
  double ring = 0;
  for (const auto& [worker, count] : groups) {
    if (count > 0 && worker->ring) ring = std::max(ring, ring_sd(*worker->ring, worker_count(groups)));
  }
  const bool samples = std::holds_alternative<ForEpochs>(target);
  return std::hypot(common_sd(predictor, target, profile), samples ? speed.sd_by_samples : speed.sd_by_updates, ring);
}

Basis weakest_basis(std::span<const Group> groups) {
  Basis weakest = Basis::measured;
  for (const auto& [worker, count] : groups) {
    if (count > 0) weakest = std::max(weakest, worker->basis);
  }
  return weakest;
}

}  // namespace mayfly
