#include "run/crew.h"

#include <algorithm>
#include <numeric>

#include "run/whole_samples.h"

namespace mayfly {
namespace {

/// Weight of the newest step in a worker's speed.
constexpr double kSmoothing = 0.2;
/// The gain that is worth a change of shares.
constexpr double kWorthwhile = 0.05;

/// How long the slowest takes, in units of samples over speed.
double slowest(const std::vector<int>& counts, const std::vector<double>& speeds) {
  double time = 0;
  for (std::size_t rank = 0; rank < counts.size(); ++rank) {
    if (speeds[rank] > 0) time = std::max(time, counts[rank] / speeds[rank]);
  }
  return time;
}

}  // namespace

Assign side_by_side(std::int64_t generation, std::vector<WorkerId> members, std::int64_t sample) {
  const auto machines = static_cast<int>(members.size());
  return {.generation = generation,
          .shape = {machines, 1},
          .members = std::move(members),
          .next_sample = progress_of(sample)};
}

void MeasuredSpeed::add(double samples, double seconds) {
  const double speed = samples / seconds;
  value_ = value_ > 0 ? value_ + kSmoothing * (speed - value_) : speed;
}

bool worth_a_change(const std::vector<int>& wanted, const std::vector<int>& counts, const std::vector<double>& speeds) {
  return slowest(wanted, speeds) <= (1 - kWorthwhile) * slowest(counts, speeds);
}

std::vector<int> shares(int samples, const std::vector<double>& speeds) {
  const auto n = static_cast<int>(speeds.size());
  std::vector<double> weights = speeds;
  const auto known = std::count_if(speeds.begin(), speeds.end(), [](double speed) { return speed > 0; });
  const double mean = known > 0 ? std::accumulate(speeds.begin(), speeds.end(), 0.0) / static_cast<double>(known) : 1;
  for (double& weight : weights) {
    if (weight <= 0) weight = mean;
  }
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  const int floor = samples >= n ? 1 : 0;
  const int rest = samples - floor * n;
  std::vector<int> counts(speeds.size(), floor);
  std::vector<std::pair<double, int>> fractions;
  int given = floor * n;
  for (int rank = 0; rank < n; ++rank) {
    const double exact = rest * weights[static_cast<std::size_t>(rank)] / total;
    const int whole = static_cast<int>(exact);
    counts[static_cast<std::size_t>(rank)] += whole;
    given += whole;
    fractions.emplace_back(whole - exact, rank);
  }
  std::sort(fractions.begin(), fractions.end());
  for (std::size_t i = 0; given < samples; ++i, ++given) ++counts[static_cast<std::size_t>(fractions[i].second)];
  return counts;
}

}  // namespace mayfly
