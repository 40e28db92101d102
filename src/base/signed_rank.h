#pragma once

#include <span>

namespace mayfly {

/// A value and where it lies with 95 % certainty, or as near to that as so few measurements allow.
struct Centre {
  double value = 0;
  double low = 0;
  double high = 0;
  bool operator==(const Centre&) const = default;
};

/// The centre of a symmetric scatter: the median of all means of two (Hodges and Lehmann), with the interval that
/// Wilcoxon's signed ranks give. A few wild values move it little, and no shape of the scatter is assumed. With fewer
/// than six values the interval is their whole range, which is less than 95 %. Requires at least one value.
Centre signed_rank_interval(std::span<const double> values);

}  // namespace mayfly
