#include "trace/stats.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace mayfly {
namespace {

/// Linear between the two nearest ranks. Sorted, not empty.
double quantile(const std::vector<double>& sorted, double share) {
  const double rank = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(rank);
  const auto above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (rank - std::floor(rank)) * (sorted[above] - sorted[below]);
}

std::optional<Lifetimes> lifetimes(const std::vector<Stay>& stays) {
  std::vector<double> lengths;
  for (const Stay& stay : stays) {
    if (stay.preempted) lengths.push_back((stay.end - stay.begin).count());
  }
  if (lengths.empty()) return {};
  std::sort(lengths.begin(), lengths.end());
  const double sum = std::accumulate(lengths.begin(), lengths.end(), 0.0);
  const auto ended = static_cast<int>(lengths.size());
  return Lifetimes{.mean = Seconds(sum / ended),
                   .p50 = Seconds(quantile(lengths, 0.5)),
                   .p90 = Seconds(quantile(lengths, 0.9)),
                   .ended = ended,
                   .still_there = static_cast<int>(stays.size()) - ended};
}

std::optional<PriceStats> price_stats(const std::vector<PricePoint>& prices, Seconds duration) {
  if (prices.empty()) return {};
  double weighted = 0;
  PriceStats stats{.least = prices[0].price, .most = prices[0].price};
  for (std::size_t i = 0; i < prices.size(); ++i) {
    const Seconds end = i + 1 < prices.size() ? prices[i + 1].time : duration;
    weighted += prices[i].price.value * (end - prices[i].time).count();
    stats.least = std::min(stats.least, prices[i].price);
    stats.most = std::max(stats.most, prices[i].price);
  }
  const double known = (duration - prices[0].time).count();
  stats.mean = {known > 0 ? weighted / known : prices.back().price.value};
  return stats;
}

/// Machine-hours and losses by hour of the day.
class DayClock {
 public:
  explicit DayClock(double start_unix) : start_(start_unix) {}

  void held(Seconds from, Seconds to, int machines) {
    constexpr double kHour = 3600;
    constexpr double kDay = 86400;
    const double days = std::floor((to - from).count() / kDay);
    for (double& hours : machine_hours_) hours += days * machines;
    double at = start_ + from.count() + days * kDay;
    const double end = start_ + to.count();
    while (at < end) {
      const double next = std::min(end, (std::floor(at / kHour) + 1) * kHour);
      machine_hours_[hour_of(at)] += (next - at) / kHour * machines;
      at = next;
    }
  }
  void lost(Seconds time, int machines) { lost_[hour_of(start_ + time.count())] += machines; }

  std::array<std::optional<double>, 24> rates() const {
    std::array<std::optional<double>, 24> rates{};
    for (std::size_t i = 0; i < rates.size(); ++i) {
      if (machine_hours_[i] > 0) rates[i] = lost_[i] / machine_hours_[i];
    }
    return rates;
  }

 private:
  static std::size_t hour_of(double unix_time) {
    return static_cast<std::size_t>(std::fmod(std::floor(unix_time / 3600), 24));
  }
  double start_;
  std::array<double, 24> machine_hours_{};
  std::array<double, 24> lost_{};
};

void count_event(TraceStats& stats, const Change& change, long long& multi, long long& to_zero) {
  stats.instances_added += change.added;
  if (change.added > 0 && change.time.count() > 0) ++stats.addition_events;
  if (change.removed == 0) return;
  ++stats.preemption_events;
  stats.instances_preempted += change.removed;
  ++stats.preemption_sizes[change.removed];
  if (change.removed > 1) ++multi;
  if (change.available == 0) ++to_zero;
}

}  // namespace

TraceStats trace_stats(const Series& series, Seconds duration, std::optional<double> start_unix) {
  TraceStats stats{.type = series.type, .zone = series.zone, .duration = duration};
  stats.lifetime = lifetimes(series.stays);
  stats.price = price_stats(series.prices, duration);
  if (series.changes.empty()) return stats;
  DayClock day(start_unix.value_or(0));
  double machine_seconds = 0;
  // Nothing was there before the first observation.
  double zero_seconds = series.changes[0].time.count();
  const bool late = zero_seconds > 0;
  stats.min_available = late ? 0 : series.changes[0].available;
  long long multi = 0;
  long long to_zero = 0;
  std::vector<double> between;
  std::optional<Seconds> last_loss;
  for (std::size_t i = 0; i < series.changes.size(); ++i) {
    const Change& change = series.changes[i];
    const Seconds end = i + 1 < series.changes.size() ? series.changes[i + 1].time : duration;
    const double length = (end - change.time).count();
    machine_seconds += length * change.available;
    if (change.available == 0) zero_seconds += length;
    stats.min_available = std::min(stats.min_available, change.available);
    stats.max_available = std::max(stats.max_available, change.available);
    count_event(stats, change, multi, to_zero);
    if (change.removed > 0) {
      if (last_loss) between.push_back((change.time - *last_loss).count());
      last_loss = change.time;
      day.lost(change.time, change.removed);
    }
    if (start_unix) day.held(change.time, end, change.available);
  }
  stats.mean_available = machine_seconds / duration.count();
  stats.share_at_zero = zero_seconds / duration.count();
  if (stats.preemption_events > 0) {
    const auto events = static_cast<double>(stats.preemption_events);
    stats.share_multi = static_cast<double>(multi) / events;
    stats.share_to_zero = static_cast<double>(to_zero) / events;
  }
  std::sort(between.begin(), between.end());
  if (!between.empty()) stats.between_preemptions_p50 = Seconds(quantile(between, 0.5));
  if (start_unix) stats.losses_per_hour = day.rates();
  return stats;
}

TraceStats trace_stats(const Trace& trace) {
  if (trace.series.size() == 1) return trace_stats(trace.series[0], trace.duration, trace.start_unix);
  return trace_stats(merged(trace), trace.duration, trace.start_unix);
}

}  // namespace mayfly
