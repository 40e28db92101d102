// Model: docs/models.md#liveput
#include "plan/liveput.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mayfly {
namespace {

/// Of an event's sizes.
constexpr double kRare = 0.005;
/// Shapes that may be taken with one number of machines: beyond the fastest so many, others only take time to weigh.
constexpr std::size_t kMostWorthwhile = 24;
/// Intervals by which earlier values are carried on when the weather has taught more.
constexpr int kRefresh = 4;
/// A blind plan may hope for so many machines more than there are; if they do not come, it shrinks.
constexpr int kHoped = 8;

}  // namespace

std::optional<int> fitted(const Shapes& shapes, int shape, int machines) {
  if (shapes[shape].machines() <= machines) return shape;
  const int stages = shapes[shape].stages;
  if (const auto fewer = shapes.find({machines / stages, stages})) return fewer;
  return shapes.best(machines);
}

Liveput::Liveput(const Shapes& shapes, const MigrationCosts& costs, int most_machines, LiveputOptions options)
    : shapes_(shapes), costs_(costs), options_(options), most_(most_machines), size_(shapes.size()) {
  std::vector<bool> ever(static_cast<std::size_t>(size_), false);
  for (int n = 0; n <= most_; ++n) {
    worthwhile_.emplace_back();
    const auto fastest = shapes.best(n);
    for (int shape = 0; fastest && shape < size_; ++shape) {
      if (shapes[shape].machines() > n || shapes.speed(shape) < options.keep * shapes.speed(*fastest)) continue;
      worthwhile_.back().push_back(shape);
    }
    std::vector<int>& kept = worthwhile_.back();
    if (kept.size() > kMostWorthwhile) {
      std::sort(kept.begin(), kept.end(),
                [&](int a, int b) { return std::pair(-shapes.speed(a), a) < std::pair(-shapes.speed(b), b); });
      kept.resize(kMostWorthwhile);
      std::sort(kept.begin(), kept.end());
    }
    for (const int shape : kept) ever[static_cast<std::size_t>(shape)] = true;
  }
  for (int shape = 0; shape < size_; ++shape) {
    if (ever[static_cast<std::size_t>(shape)] || options.sight == Sight::blind) held_.push_back(shape);
  }
  held_.push_back(size_);
  for (int n = 0; options.sight == Sight::blind && n <= most_; ++n) {
    std::vector<int>& plans = plans_.emplace_back();
    for (int more = n; more <= std::min(most_, n + kHoped); ++more) {
      const auto& shapes_then = worthwhile_[static_cast<std::size_t>(more)];
      plans.insert(plans.end(), shapes_then.begin(), shapes_then.end());
    }
    std::sort(plans.begin(), plans.end());
    plans.erase(std::unique(plans.begin(), plans.end()), plans.end());
  }
  const auto counts = static_cast<std::size_t>(most_) + 1;
  tables_.assign(counts * counts, nullptr);
}

const MigrationCosts::Table& Liveput::costs(int machines, int lost) const {
  const MigrationCosts::Table*& table =
      tables_[static_cast<std::size_t>(machines) * (static_cast<std::size_t>(most_) + 1) +
              static_cast<std::size_t>(lost)];
  if (table == nullptr) table = &costs_.table(machines, lost);
  return *table;
}

std::pair<double, int> Liveput::best(int mode, int machines, const Outlook& outlook, int shape) const {
  const int after = machines + outlook.added - outlook.removed;
  const MigrationCosts::Table& table = costs(machines, outlook.removed);
  const double* ahead = &values_[index(mode, after, 0)];
  const double interval = options_.interval.count();
  std::pair<double, int> most{-std::numeric_limits<double>::infinity(), size_};
  const auto consider = [&](int to) {
    const double worth = shapes_.speed(to) * (interval - table(shape, to)) + ahead[to];
    if (worth > most.first) most = {worth, to};
  };
  // Staying comes first, so that of equals it wins.
  if (shape < size_ && shapes_[shape].machines() <= after) consider(shape);
  for (const int to : worthwhile_[static_cast<std::size_t>(after)]) consider(to);
  if (most.second == size_) most.first = ahead[size_];
  return most;
}

double Liveput::planned(int mode, int machines, const Outlook& outlook, int shape, int plan) const {
  const int after = machines + outlook.added - outlook.removed;
  const auto taken = plan < size_ ? fitted(shapes_, plan, after) : std::nullopt;
  if (!taken) return values_[index(mode, after, size_)];
  const double cost = costs(machines, outlook.removed)(shape, *taken);
  return shapes_.speed(*taken) * (options_.interval.count() - cost) + values_[index(mode, after, *taken)];
}

template <class Worth>
void Liveput::expect(int machines, Worth worth, std::vector<double>& by_mode) const {
  // What follows an event does not depend on the state before it, so only the rates differ between states.
  double lost = 0;
  double gained = 0;
  const auto& losses = losses_[static_cast<std::size_t>(machines)];
  const auto& arrivals = arrivals_[static_cast<std::size_t>(machines)];
  for (const auto& [size, p] : losses) lost += p * worth(after_loss_, Outlook{0, size});
  for (const auto& [size, p] : arrivals) gained += p * worth(after_arrival_, Outlook{size, 0});
  for (std::size_t mode = 0; mode < rates_.size(); ++mode) {
    const double lose = losses.empty() ? 0 : rates_[mode].first;
    const double gain = arrivals.empty() ? 0 : rates_[mode].second;
    by_mode[mode] = lose * lost + gain * gained + (1 - lose - gain) * worth(calmer_[mode], Outlook{});
  }
}

void Liveput::sweep() {
  std::vector<double> next(values_.size(), 0);
  std::vector<double> by_mode(rates_.size());
  std::vector<double> most(rates_.size());
  for (int n = 0; n <= most_; ++n) {
    for (const int shape : held_) {
      if (shape < size_ && shapes_[shape].machines() > n) continue;
      if (options_.sight == Sight::informed) {
        expect(n, [&](int mode, const Outlook& o) { return best(mode, n, o, shape).first; }, most);
      } else {
        expect(n, [&](int mode, const Outlook& o) { return planned(mode, n, o, shape, shape); }, most);
        for (const int plan : plans_[static_cast<std::size_t>(n)]) {
          expect(n, [&](int mode, const Outlook& o) { return planned(mode, n, o, shape, plan); }, by_mode);
          for (std::size_t mode = 0; mode < most.size(); ++mode) most[mode] = std::max(most[mode], by_mode[mode]);
        }
      }
      for (std::size_t mode = 0; mode < most.size(); ++mode) next[index(static_cast<int>(mode), n, shape)] = most[mode];
    }
  }
  values_ = std::move(next);
}

void Liveput::adopt(const Weather& weather) {
  rates_.clear();
  calmer_.clear();
  losses_.assign(static_cast<std::size_t>(most_) + 1, {});
  arrivals_.assign(static_cast<std::size_t>(most_) + 1, {});
  for (int mode = 0; mode < weather.modes(); ++mode) {
    rates_.push_back(weather.rates(mode));
    calmer_.push_back(weather.next_mode(mode, {}));
  }
  after_loss_ = weather.next_mode(0, {0, 1});
  after_arrival_ = weather.next_mode(0, {1, 0});
  const auto likely = [](const std::vector<double>& sizes, int room) {
    // What is rarer than kRare is counted with the next likelier size, and what there is no room for with the largest.
    std::vector<std::pair<int, double>> kept;
    double rest = 0;
    for (std::size_t size = 1; size < sizes.size(); ++size) {
      rest += sizes[size];
      if (rest < kRare || static_cast<int>(size) > room) continue;
      kept.emplace_back(static_cast<int>(size), rest);
      rest = 0;
    }
    if (kept.empty() && room > 0 && rest > 0) kept.emplace_back(room, 0);
    if (!kept.empty()) kept.back().second += rest;
    return kept;
  };
  for (int n = 0; n <= most_; ++n) {
    losses_[static_cast<std::size_t>(n)] = likely(weather.loss_sizes(n), n);
    arrivals_[static_cast<std::size_t>(n)] = likely(weather.arrival_sizes(n), most_ - n);
  }
}

void Liveput::learn(const Weather& weather) {
  adopt(weather);
  values_.assign(index(weather.modes(), 0, 0), 0);
  for (int step = 0; step < options_.horizon; ++step) sweep();
}

void Liveput::relearn(const Weather& weather) {
  if (values_.empty()) return learn(weather);
  adopt(weather);
  for (int step = 0; step < kRefresh; ++step) sweep();
}

std::optional<int> Liveput::choice(int mode, int machines, std::optional<int> shape, const Outlook& outlook) const {
  const int taken = best(mode, machines, outlook, shape.value_or(size_)).second;
  return taken == size_ ? std::nullopt : std::optional(taken);
}

std::optional<int> Liveput::blind_choice(int mode, int machines, std::optional<int> shape) const {
  const int from = shape.value_or(size_);
  double most = -std::numeric_limits<double>::infinity();
  std::optional<int> taken;
  std::vector<double> by_mode(rates_.size());
  const auto consider = [&](int plan) {
    expect(machines, [&](int next, const Outlook& o) { return planned(next, machines, o, from, plan); }, by_mode);
    const double worth = by_mode[static_cast<std::size_t>(mode)];
    if (worth > most) {
      most = worth;
      taken = plan;
    }
  };
  if (shape) consider(*shape);
  for (const int plan : plans_[static_cast<std::size_t>(machines)]) consider(plan);
  return taken;
}

}  // namespace mayfly
