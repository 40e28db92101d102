#pragma once

#include <cstddef>
#include <span>

// Times of steps, and how well their mean is known: docs/profiling.md#how-times-are-measured.
namespace mayfly {

/// 0 of none.
double mean(std::span<const double> values);

/// A mean and what it rests on.
struct MeasuredMean {
  double mean = 0;
  double interval = 0;     ///< half of the 95 % interval of the mean; 0: too few values to tell
  double relative_sd = 0;  ///< between stretches of the values; 0: not known
  int counted = 0;
  int warm_up = 0;   ///< left out at the beginning
  int outliers = 0;  ///< left out since something else held the machine up
  bool operator==(const MeasuredMean&) const = default;
};

/// The first tenth of the values, but 3 to 20 of them, is warm-up (of fewer than 6 values: the first half). Of the
/// rest, values over the median by more than 5 times the scaled median deviation are outliers, as long as they are at
/// most a tenth: more of them are how the job is. Neighbours are alike, so the spread is taken between up to ten
/// stretches of the values, as long as there are two values for each and three stretches.
inline constexpr std::size_t kStretches = 10;
MeasuredMean estimated(std::span<const double> values);

/// Its interval is within this share of the mean.
bool tight(const MeasuredMean& estimate, double share = 0.02);

/// Seconds = latency + bytes / rate, by least squares in the relative error, with neither below zero.
struct LinkFit {
  double latency_s = 0;
  double bytes_per_s = 0;  ///< 0: the times do not tell
  double relative_sd = 0;  ///< of the times about the line
};
LinkFit link_fit(std::span<const double> bytes, std::span<const double> seconds);

}  // namespace mayfly
