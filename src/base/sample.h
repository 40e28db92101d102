#pragma once

#include <vector>

namespace mayfly {

/// The smallest value that at least `share` of the sorted ones do not exceed. Requires one.
double nearest_rank(const std::vector<double>& sorted, double share);

/// What a share seen in so many independent cases says of the share there is.
struct ShareBounds {
  double low = 0;
  double high = 1;
};
/// Wilson's interval, `z` standard deviations to either side; the share lies in it. Requires count > 0.
ShareBounds wilson_interval(double share, double count, double z);

}  // namespace mayfly
