#include "trace/trace.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace mayfly {

std::string_view name(Observation observation) { return observation == Observation::held ? "held" : "probe"; }

int available_at(const Series& series, Seconds time) {
  const auto after = std::upper_bound(series.changes.begin(), series.changes.end(), time,
                                      [](Seconds t, const Change& change) { return t < change.time; });
  return after == series.changes.begin() ? 0 : std::prev(after)->available;
}

Series slice(const Series& series, Seconds from, Seconds to) {
  Series cut{.type = series.type, .zone = series.zone};
  const int before = available_at(series, from);
  if (!series.changes.empty()) cut.changes.push_back({.time = Seconds(0), .added = before, .available = before});
  for (const Change& change : series.changes) {
    if (change.time <= from || change.time >= to) continue;
    cut.changes.push_back(change);
    cut.changes.back().time -= from;
  }
  for (const PricePoint& point : series.prices) {
    if (point.time >= to) break;
    if (point.time <= from) cut.prices.clear();
    cut.prices.push_back({.time = std::max(Seconds(0), point.time - from), .price = point.price});
  }
  for (const Stay& stay : series.stays) {
    if (stay.end <= from || stay.begin >= to) continue;
    const bool seen = stay.preempted && stay.end < to;
    cut.stays.push_back({.begin = std::max(Seconds(0), stay.begin - from),
                         .end = std::min(to, stay.end) - from,
                         .preempted = seen,
                         .loss = stay.loss});
  }
  return cut;
}

Series capped(const Series& series, int most) {
  Series cut{.type = series.type, .zone = series.zone, .prices = series.prices};
  int held = 0;
  int before = 0;
  double due = 0;  // losses that are ours by share, not yet suffered
  for (const Change& change : series.changes) {
    // Of machines that are all alike, those held suffer their share; others take the empty places at once.
    if (before > 0) due += static_cast<double>(held) / before * change.removed;
    const int after = std::min(most, change.available);
    const int hit = std::min(held, static_cast<int>(std::floor(due + 1e-9)));
    due -= hit;
    const int kept = std::min(held - hit, after);
    if (cut.changes.empty() || kept != held || after != kept)
      cut.changes.push_back({.time = change.time, .added = after - kept, .removed = held - kept, .available = after});
    held = after;
    before = change.available;
  }
  return cut;
}

namespace {

/// What a machine costs on average over what the series have, from when all have a price; nothing where one has none.
std::vector<PricePoint> mean_prices(const std::vector<Series>& all) {
  std::set<Seconds> times;
  Seconds first{};
  for (const Series& series : all) {
    if (series.prices.empty()) return {};
    first = std::max(first, series.prices.front().time);
    for (const Change& change : series.changes) times.insert(change.time);
    for (const PricePoint& point : series.prices) times.insert(point.time);
  }
  std::vector<PricePoint> means;
  std::vector<std::size_t> change_at(all.size());
  std::vector<std::size_t> price_at(all.size());
  for (const Seconds time : times) {
    double machines = 0;
    double cost = 0;
    double sum = 0;
    for (std::size_t s = 0; s < all.size(); ++s) {
      const auto& changes = all[s].changes;
      const auto& prices = all[s].prices;
      while (change_at[s] < changes.size() && changes[change_at[s]].time <= time) ++change_at[s];
      while (price_at[s] < prices.size() && prices[price_at[s]].time <= time) ++price_at[s];
      if (price_at[s] == 0) continue;
      const int available = change_at[s] > 0 ? changes[change_at[s] - 1].available : 0;
      machines += available;
      cost += available * prices[price_at[s] - 1].price.value;
      sum += prices[price_at[s] - 1].price.value;
    }
    if (time < first) continue;
    means.push_back({time, {machines > 0 ? cost / machines : sum / static_cast<double>(all.size())}});
  }
  return means;
}

}  // namespace

Series merged(const Trace& trace) {
  std::map<Seconds, Change> sums;
  Series all;
  for (const Series& series : trace.series) {
    for (const Change& change : series.changes) {
      Change& sum = sums[change.time];
      sum.added += change.added;
      sum.removed += change.removed;
    }
    all.stays.insert(all.stays.end(), series.stays.begin(), series.stays.end());
  }
  const auto same_type = [&](const Series& series) { return series.type == trace.series[0].type; };
  if (!trace.series.empty() && std::all_of(trace.series.begin(), trace.series.end(), same_type))
    all.type = trace.series[0].type;
  if (trace.series.size() == 1) all.zone = trace.series[0].zone;
  all.prices = mean_prices(trace.series);
  int available = 0;
  for (auto& [time, change] : sums) {
    change.time = time;
    available += change.added - change.removed;
    change.available = available;
    all.changes.push_back(change);
  }
  return all;
}

}  // namespace mayfly
