#include "predict/loss.h"

#include <algorithm>
#include <cmath>

namespace mayfly {
namespace {

/// K: the loss above its floor falls as K / steps in the long run.
double amplitude(const LossCurve& curve, const LossConditions& at) {
  if (curve.form == LossCurve::Form::cynthia) {
    return curve.scale * (at.sync == Sync::asp ? std::sqrt(static_cast<double>(at.workers)) : 1);
  }
  const double spread = curve.cc_offset ? (at.cc + *curve.cc_offset) * at.workers : at.workers;
  return (curve.batch_slope * at.batch + curve.scale) * std::sqrt(spread);
}

}  // namespace

double loss_after(const LossCurve& curve, const LossConditions& at, double steps) {
  const double k = amplitude(curve, at);
  switch (curve.form) {
    case LossCurve::Form::spotdnn:
      return k / (steps + curve.shift) + curve.floor;
    case LossCurve::Form::cynthia:
      return k / steps + curve.floor;
    case LossCurve::Form::common_start:
      break;
  }
  const double start = curve.initial - curve.floor;
  return curve.floor + start * k / (start * steps + k);
}

std::optional<double> steps_to_loss(const LossCurve& curve, const LossConditions& at, double loss) {
  const double k = amplitude(curve, at);
  if (loss <= curve.floor || k <= 0) return std::nullopt;
  // The operation order of the published prototype, so that its rounded figures come out to the last digit.
  const double steps = k / (loss - curve.floor);
  if (curve.form == LossCurve::Form::spotdnn) return std::max(0.0, steps - curve.shift);
  if (curve.form == LossCurve::Form::cynthia) return steps;
  return std::max(0.0, steps - k / (curve.initial - curve.floor));
}

}  // namespace mayfly
