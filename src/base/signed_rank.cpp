#include "base/signed_rank.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/check.h"

namespace mayfly {
namespace {

/// How many of the smallest and of the largest means of two lie outside the interval: the largest k for which signed
/// ranks of n values add up to less than k by chance in at most 2.5 % of all cases. The sum's distribution is built up
/// rank by rank: rank r is in it or not, each as likely.
std::size_t outside(std::size_t n) {
  std::vector<double> chance(n * (n + 1) / 2 + 1, 0.0);
  chance[0] = 1;
  for (std::size_t rank = 1; rank <= n; ++rank) {
    for (std::size_t sum = chance.size(); sum-- > 0;)
      chance[sum] = 0.5 * chance[sum] + (sum >= rank ? 0.5 * chance[sum - rank] : 0);
  }
  constexpr double kTail = 0.025;
  double total = 0;
  std::size_t count = 0;
  while (count < chance.size() && total + chance[count] <= kTail) total += chance[count++];
  return count;
}

}  // namespace

Centre signed_rank_interval(std::span<const double> values) {
  MAYFLY_CHECK(!values.empty(), "an interval of nothing");
  std::vector<double> means;
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (std::size_t j = i; j < values.size(); ++j) means.push_back((values[i] + values[j]) / 2);
  }
  std::sort(means.begin(), means.end());
  const std::size_t middle = means.size() / 2;
  const double median = means.size() % 2 == 1 ? means[middle] : (means[middle - 1] + means[middle]) / 2;
  const std::size_t left_out = std::min(outside(values.size()), middle);
  const std::size_t edge = left_out > 0 ? left_out - 1 : 0;
  return {.value = median, .low = means[edge], .high = means[means.size() - 1 - edge]};
}

}  // namespace mayfly
