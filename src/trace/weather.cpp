// Model: docs/models.md#weather
#include "trace/weather.h"

#include <algorithm>
#include <cmath>

namespace mayfly {
namespace {

/// Intervals of evidence with which a state's rate is pulled to the pooled one, and the pooled one to kPriorRate.
constexpr double kStateWeight = 10;
constexpr double kPooledWeight = 60;
constexpr double kPriorRate = 1.0 / 60;
/// Events of evidence for sizes falling by half: 1/2, 1/4, ...
constexpr double kSizeWeight = 2;
constexpr std::size_t kSizes = 12;
/// States of the cluster less likely than this are not followed.
constexpr double kRare = 1e-9;

}  // namespace

Weather::Weather(int most, int memory) : most_(most), memory_(memory) {
  for (Kind* kind : {&losses_, &arrivals_}) {
    kind->seen.assign(static_cast<std::size_t>(modes()), 0);
    kind->spent.assign(static_cast<std::size_t>(modes()), 0);
  }
}

void Weather::Kind::observe(int mode, int size, int room) {
  const auto at = static_cast<std::size_t>(mode);
  if (room > 0) spent[at] += 1;
  if (size == 0) return;
  seen[at] += 1;
  events += 1;
  if (size > 1 && size >= room) {
    all += 1;
    return;
  }
  if (sizes.size() <= static_cast<std::size_t>(size)) sizes.resize(static_cast<std::size_t>(size) + 1);
  sizes[static_cast<std::size_t>(size)] += 1;
}

double Weather::Kind::rate(int mode) const {
  double seen_all = kPooledWeight * kPriorRate;
  double spent_all = kPooledWeight;
  for (std::size_t m = 0; m < seen.size(); ++m) {
    seen_all += seen[m];
    spent_all += spent[m];
  }
  const auto at = static_cast<std::size_t>(mode);
  return (seen[at] + kStateWeight * seen_all / spent_all) / (spent[at] + kStateWeight);
}

std::vector<double> Weather::Kind::spread(int room) const {
  std::vector<double> by_size(static_cast<std::size_t>(std::max(room, 0)) + 1, 0);
  if (room <= 0) return by_size;
  const double total = events + kSizeWeight;
  by_size.back() += all / total;
  double prior = kSizeWeight;
  for (std::size_t size = 1; size < std::max<std::size_t>(sizes.size(), kSizes); ++size) {
    if (size < kSizes) prior /= 2;  // the last of the prior's sizes takes its tail
    const double weight =
        (size < sizes.size() ? sizes[size] : 0) + (size < kSizes ? prior : 0) + (size == kSizes - 1 ? prior : 0);
    by_size[std::min(size, by_size.size() - 1)] += weight / total;
  }
  return by_size;
}

int Weather::next_mode(int mode, const Outlook& seen) const {
  if (seen.removed > 0) return memory_ > 0 ? 1 : 0;
  if (seen.added > 0) return memory_ > 0 ? 1 + memory_ : 0;
  return mode == 0 || mode == memory_ || mode == 2 * memory_ ? 0 : mode + 1;
}

void Weather::observe(int before, const Outlook& seen) {
  losses_.observe(mode_, seen.removed, before);
  arrivals_.observe(mode_, seen.added, most_ - before + seen.removed);
  mode_ = next_mode(mode_, seen);
}

std::vector<std::vector<double>> Weather::distribution(int machines, int intervals) const {
  const auto counts = static_cast<std::size_t>(most_) + 1;
  const auto states = static_cast<std::size_t>(modes());
  std::vector<std::vector<double>> sizes_lost, sizes_added;
  for (int n = 0; n <= most_; ++n) {
    sizes_lost.push_back(loss_sizes(n));
    sizes_added.push_back(arrival_sizes(n));
  }
  std::vector<std::vector<double>> now(states, std::vector<double>(counts, 0));
  now[static_cast<std::size_t>(mode_)][static_cast<std::size_t>(std::min(machines, most_))] = 1;
  const auto after_loss = static_cast<std::size_t>(next_mode(0, {0, 1}));
  const auto after_arrival = static_cast<std::size_t>(next_mode(0, {1, 0}));
  std::vector<std::vector<double>> result;
  for (int step = 0; step < intervals; ++step) {
    std::vector<std::vector<double>> next(states, std::vector<double>(counts, 0));
    for (std::size_t mode = 0; mode < states; ++mode) {
      const auto [lose, gain] = rates(static_cast<int>(mode));
      const auto after_none = static_cast<std::size_t>(next_mode(static_cast<int>(mode), {}));
      for (std::size_t n = 0; n < counts; ++n) {
        const double p = now[mode][n];
        if (p < kRare) continue;
        const double l = n > 0 ? lose : 0;
        const double g = n + 1 < counts ? gain : 0;
        for (std::size_t k = 1; k <= n; ++k) next[after_loss][n - k] += p * l * sizes_lost[n][k];
        for (std::size_t k = 1; k + n < counts; ++k) next[after_arrival][n + k] += p * g * sizes_added[n][k];
        next[after_none][n] += p * (1 - l - g);
      }
    }
    now = std::move(next);
    std::vector<double> sums(counts, 0);
    double total = 0;
    for (const auto& mode : now) {
      for (std::size_t n = 0; n < counts; ++n) sums[n] += mode[n];
    }
    for (const double p : sums) total += p;
    for (double& p : sums) p /= total;
    result.push_back(std::move(sums));
  }
  return result;
}

std::pair<double, double> Weather::rates(int mode) const {
  const double lose = losses_.rate(mode);
  const double gain = arrivals_.rate(mode);
  const double both = std::max(1.0, lose + gain);
  return {lose / both, gain / both};
}

}  // namespace mayfly
