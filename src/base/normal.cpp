#include "base/normal.h"

#include <cmath>

#include "base/check.h"

namespace mayfly {

double normal_share(double z) { return std::erfc(-z / std::sqrt(2.0)) / 2; }

double normal_quantile(double share) {
  MAYFLY_CHECK(share > 0 && share < 1, "a quantile is asked for a share between 0 and 1");
  double low = -40;
  double high = 40;
  while (high - low > 1e-12) {
    const double middle = (low + high) / 2;
    (normal_share(middle) < share ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace mayfly
