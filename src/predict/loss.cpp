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
  const double own = curve.batch_slope * at.batch + curve.scale;
  if (curve.form == LossCurve::Form::common_start) {
    return own * std::pow(spread, curve.workers_power.value_or(at.sync == Sync::asp ? 0.5 : 0));
  }
  return own * std::sqrt(spread);
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
  if (loss <= curve.floor || at.batch < curve.batch_min || at.batch > curve.batch_max) return std::nullopt;
  const double k = amplitude(curve, at);
  // The operation order of the published prototype, so that its rounded figures come out to the last digit.
  double steps = k / (loss - curve.floor);
  if (curve.form == LossCurve::Form::spotdnn) steps -= curve.shift;
  if (curve.form == LossCurve::Form::common_start) steps = std::max(0.0, steps - k / (curve.initial - curve.floor));
  return k > 0 && steps >= 0 ? std::optional(steps) : std::nullopt;
}

}  // namespace mayfly
