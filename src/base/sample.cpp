#include "base/sample.h"

#include <algorithm>
#include <cmath>

namespace mayfly {

double nearest_rank(const std::vector<double>& sorted, double share) {
  const auto at = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::max<std::size_t>(at, 1) - 1];
}

ShareBounds wilson_interval(double share, double count, double z) {
  const double centre = (share + z * z / (2 * count)) / (1 + z * z / count);
  const double half = z / (1 + z * z / count) * std::sqrt(share * (1 - share) / count + z * z / (4 * count * count));
  return {std::clamp(centre - half, 0.0, share), std::clamp(centre + half, share, 1.0)};
}

}  // namespace mayfly
