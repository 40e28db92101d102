#pragma once

#include <optional>

#include "job/profile.h"

// Model: docs/models.md#loss.
namespace mayfly {

/// What of a cluster its loss curve depends on.
struct LossConditions {
  double batch = 0;  ///< weighted-average batch
  int workers = 1;
  double cc = 0;     ///< convergence coefficient
  Sync sync = Sync::asp;
};

/// Loss after `steps` normalized iterations.
double loss_after(const LossCurve& curve, const LossConditions& at, double steps);

/// Steps until the loss is reached: 0 if it is at or below it from the start, nothing if it never is.
std::optional<double> steps_to_loss(const LossCurve& curve, const LossConditions& at, double loss);

}  // namespace mayfly
