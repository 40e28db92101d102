#pragma once

#include <optional>

#include "job/profile.h"

// Model: docs/models.md#loss.
namespace mayfly {

/// What of a cluster its loss curve depends on.
struct LossConditions {
  double batch = 0;  ///< weighted-average batch
  int workers = 1;
  double cc = 0;  ///< convergence coefficient
  Sync sync = Sync::asp;
};

/// Loss after `steps` normalized iterations.
double loss_after(const LossCurve& curve, const LossConditions& at, double steps);

/// Steps until the loss is reached; nothing where the curve does not say: the loss is not above its floor, the batch
/// lies outside the range it was fitted for, or the form breaks down (spotDNN's falls below zero steps for large
/// batches).
std::optional<double> steps_to_loss(const LossCurve& curve, const LossConditions& at, double loss);

}  // namespace mayfly
