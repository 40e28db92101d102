#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "trace/forecast.h"

// The numbers 5, 10, 0.75 and 0.5 below are the artifact's; docs/models.md#forecast.
namespace mayfly {
namespace {

/// A short excursion that returns to where it left is taken for noise and flattened; the long ones first.
void remove_outliers(std::vector<double>& y) {
  for (const std::size_t width : {3U, 2U, 1U}) {
    for (std::size_t j = 0; j + width + 1 < y.size(); ++j) {
      const auto first = y.begin() + static_cast<std::ptrdiff_t>(j) + 1;
      const auto last = first + static_cast<std::ptrdiff_t>(width);
      if (y[j] != *last || std::find(first, last, y[j]) != last) continue;
      std::fill(first, last, y[j]);
    }
  }
}

/// Of a series that turned, only what came after the turn counts.
void flatten_before_turn(std::vector<double>& y) {
  const auto before_last = [&](double extreme) {
    std::fill(y.begin(), std::find(y.rbegin(), y.rend(), extreme).base(), extreme);
  };
  const double least = *std::min_element(y.begin(), y.end());
  const double most = *std::max_element(y.begin(), y.end());
  if (least < y.front() && least < y.back()) {
    before_last(least);
  } else if (most > y.front() && most > y.back()) {
    before_last(most);
  }
}

bool constant(std::span<const double> y) {
  return std::all_of(y.begin(), y.end(), [&](double value) { return value == y[0]; });
}

/// Preemptions per interval for the Poisson term: the least of mean, variance and deviation.
double poisson_mean(std::span<const Interval> window) {
  double mean = 0;
  for (const Interval& interval : window) mean += interval.removed;
  mean /= static_cast<double>(window.size());
  double variance = 0;
  for (const Interval& interval : window) variance += (interval.removed - mean) * (interval.removed - mean);
  variance /= static_cast<double>(window.size());
  return std::min({mean, variance, std::sqrt(variance)});
}

}  // namespace

void ParcaeForecast::note_trend(std::span<const double> cleaned) {
  const double rise = cleaned.back() - cleaned.front();
  const double weight = std::abs(rise) >= 10 ? 0.5 : 0.75;
  if (std::abs(rise) < 5) return;
  if (rise > 0 && std::is_sorted(cleaned.begin(), cleaned.end())) added_weight_ = weight;
  if (rise < 0 && std::is_sorted(cleaned.rbegin(), cleaned.rend())) removed_weight_ = weight;
}

std::vector<Interval> ParcaeForecast::next(std::span<const Interval> history, int horizon) {
  MAYFLY_CHECK(!history.empty() && horizon > 0, "a forecast needs a past and a future");
  const auto length = static_cast<std::size_t>(options_.history.value_or(history_length(horizon)));
  if (history.size() <= length)
    return std::vector<Interval>(static_cast<std::size_t>(horizon), {.available = history.back().available});
  const auto window = history.last(length);
  std::vector<double> cleaned;
  for (const Interval& interval : window) cleaned.push_back(interval.available);
  const bool was_constant = constant(cleaned);
  remove_outliers(cleaned);
  flatten_before_turn(cleaned);
  note_trend(cleaned);

  std::vector<double> counts =
      forecast(constant(cleaned) ? Forecaster::persistence : Forecaster::arima, cleaned, horizon);
  for (double& count : counts) count = std::nearbyint(count);
  for (double& count : counts) count = std::clamp(count, counts[0] - options_.growth, counts[0] + options_.growth);
  for (double& count : counts) count = std::clamp<double>(count, options_.least, options_.most);

  const double mean = options_.poisson && constant(counts) && !was_constant ? poisson_mean(window) : 0;
  std::vector<Interval> result;
  double before = cleaned.back();
  double available = cleaned.back();
  for (const double count : counts) {
    const double added = std::max(0.0, count - before);
    const double removed = std::max(0.0, before - count) + (mean > 0 ? rng_.poisson(mean) : 0);
    const double after = std::nearbyint(available + added_weight_ * added - removed_weight_ * removed);
    result.push_back({.available = static_cast<int>(after),
                      .added = static_cast<int>(std::max(0.0, after - available)),
                      .removed = static_cast<int>(std::max(0.0, available - after))});
    before = count;
    available = after;
  }
  return result;
}

}  // namespace mayfly
