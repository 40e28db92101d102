// Model: docs/models.md#migration
#include "predict/hits.h"

#include <cmath>
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

}  // namespace mayfly
