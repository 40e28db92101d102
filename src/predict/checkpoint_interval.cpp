#include "predict/checkpoint_interval.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace mayfly {
namespace {

/// Shorter ones would follow steps, not time.
constexpr Seconds kShortest{1};
/// M is an estimate; whatever it says, no more work than this is put at risk.
constexpr Seconds kLongest{3600};

/// J. Daly, A higher order estimate of the optimum checkpoint interval, FGCS 22 (2006).
Seconds daly(Seconds cost, Seconds mean) {
  if (cost >= 2 * mean) return mean;
  const double ratio = cost / (2 * mean);
  const double young = std::sqrt(2 * cost.count() * mean.count());
  return Seconds(young * (1 + std::sqrt(ratio) / 3 + ratio / 9)) - cost;
}

}  // namespace

Seconds checkpoint_interval(Seconds cost, Seconds mean_time_between_losses) {
  MAYFLY_CHECK(cost.count() >= 0 && mean_time_between_losses.count() > 0, "a checkpoint's cost and a time");
  if (std::isinf(mean_time_between_losses.count())) return kLongest;
  return std::clamp(daly(cost, mean_time_between_losses), kShortest, kLongest);
}

}  // namespace mayfly
