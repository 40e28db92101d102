// Model: docs/models.md#migration
#include "predict/losses.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace mayfly {
namespace {

double log_choose(int n, int k) { return std::lgamma(n + 1.0) - std::lgamma(k + 1.0) - std::lgamma(n - k + 1.0); }

/// Pascal's triangle as far as doubles hold it comfortably.
constexpr int kTriangle = 512;
double choose(int n, int k) {
  static const std::vector<double> triangle = [] {
    std::vector<double> rows;
    for (int row = 0; row <= kTriangle; ++row) {
      for (int at = 0; at <= row; ++at) {
        const auto above = rows.size() - static_cast<std::size_t>(row);
        rows.push_back(at == 0 || at == row ? 1 : rows[above - 1] + rows[above]);
      }
    }
    return rows;
  }();
  return triangle[static_cast<std::size_t>(n) * static_cast<std::size_t>(n + 1) / 2 + static_cast<std::size_t>(k)];
}

}  // namespace

double hit_probability(int machines, int inside, int lost, int hit) {
  const int outside = machines - inside;
  if (hit < 0 || hit > inside || hit > lost || lost - hit > outside) return 0;
  if (machines <= kTriangle) return choose(inside, hit) * choose(outside, lost - hit) / choose(machines, lost);
  return std::exp(log_choose(inside, hit) + log_choose(outside, lost - hit) - log_choose(machines, lost));
}

double survival_probability(int machines, Shape grid, int keep, int lost) {
  // Stage after stage: chance that so many losses are left for the stages to come, none so far having lost too many.
  const int width = grid.data_parallel;
  std::vector<double> left(static_cast<std::size_t>(lost) + 1, 0);
  left[static_cast<std::size_t>(lost)] = 1;
  int rest = machines;
  for (int stage = 0; stage < grid.stages; ++stage, rest -= width) {
    std::vector<double> next(left.size(), 0);
    for (int l = 0; l <= lost; ++l) {
      if (left[static_cast<std::size_t>(l)] == 0) continue;
      for (int hit = 0; hit <= std::min(l, width - keep); ++hit)
        next[static_cast<std::size_t>(l - hit)] +=
            left[static_cast<std::size_t>(l)] * hit_probability(rest, width, l, hit);
    }
    left = std::move(next);
  }
  return std::accumulate(left.begin(), left.end(), 0.0);
}

}  // namespace mayfly
