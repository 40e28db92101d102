#pragma once

#include <cstdint>

#include "base/check.h"

namespace mayfly {

// A run counts whole samples, in std::int64_t, on the wire as in its ledger. The controller counts them in doubles,
// because simulated progress is fractional. What passes from the one to the other passes here.

/// Up to here a double tells each whole number from the next.
inline constexpr std::int64_t kMostSamples = std::int64_t{1} << 53;

/// A run's count, for the controller.
inline double progress_of(std::int64_t samples) {
  MAYFLY_CHECK(samples >= 0 && samples <= kMostSamples, "a count of samples that the controller can hold");
  return static_cast<double>(samples);
}

/// The controller's count, for a run: it was told whole samples, so it has whole ones.
inline std::int64_t whole_samples(double progress) {
  MAYFLY_CHECK(progress >= 0 && progress <= static_cast<double>(kMostSamples), "a count of samples");
  const auto samples = static_cast<std::int64_t>(progress);
  MAYFLY_CHECK(static_cast<double>(samples) == progress, "samples of a run are whole");
  return samples;
}

/// The samples that a forecast or an estimate asks for, which may be of any size: the largest count stands for all
/// beyond it, as none of them is ever reached. What there is of a last sample is left out.
inline std::int64_t wanted_samples(double estimate) {
  if (!(estimate < static_cast<double>(kMostSamples))) return kMostSamples;
  return estimate > 0 ? static_cast<std::int64_t>(estimate) : 0;
}

}  // namespace mayfly
