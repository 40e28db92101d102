#include "trace/read.h"

#include <algorithm>

namespace mayfly {

void Changes::add(Seconds time, int added, int removed) {
  available_ += added - removed;
  if (changes_.empty() || changes_.back().time < time) {
    changes_.push_back({.time = time, .added = added, .removed = removed, .available = available_});
    return;
  }
  Change& last = changes_.back();
  if (last.added > kMostAtOnce - added || last.removed > kMostAtOnce - removed) {
    overflow_ = true;
    return;
  }
  last.added += added;
  last.removed += removed;
  last.available = available_;
}

void Changes::observe(Seconds time, int count) {
  const int difference = count - available_;
  if (difference == 0 && !changes_.empty()) return;
  add(time, std::max(difference, 0), std::max(-difference, 0));
}

Result<std::vector<Change>> Changes::take(const std::string& file) && {
  if (overflow_) return fail("{}: more than {} machines came or went at one moment", file, kMostAtOnce);
  return std::move(changes_);
}

bool Machines::add(Seconds time, std::string_view name) {
  const auto [at, fresh] = held_.try_emplace(name, stays_.size());
  if (!fresh) return false;
  stays_.push_back({.begin = time});
  changes_.add(time, 1, 0);
  return true;
}

bool Machines::remove(Seconds time, std::string_view name) {
  const auto at = held_.find(name);
  if (at == held_.end()) return false;
  stays_[at->second].end = time;
  stays_[at->second].preempted = true;
  stays_[at->second].loss = losses_++;
  held_.erase(at);
  changes_.add(time, 0, 1);
  return true;
}

Result<Series> Machines::take(Seconds end, const std::string& file) && {
  for (const auto& [name, stay] : held_) stays_[stay].end = end;
  auto changes = std::move(changes_).take(file);
  if (!changes) return unexpected(changes.error());
  return Series{.changes = *std::move(changes), .stays = std::move(stays_)};
}

void add_price(std::vector<PricePoint>& prices, Seconds time, double usd_per_hour) {
  if (!prices.empty() && prices.back().price.value == usd_per_hour) return;
  prices.push_back({.time = time, .price = {usd_per_hour}});
}

Result<Seconds> agreed_gap(std::optional<Seconds> stated, const TraceOptions& options, const std::string& where) {
  constexpr Seconds kUsual{60};
  if (!stated) return options.gap.value_or(kUsual);
  if (options.gap && *options.gap != *stated)
    return fail("{}: the file's own gap is {} s, want no other ({} s)", where, stated->count(), options.gap->count());
  return *stated;
}

}  // namespace mayfly
