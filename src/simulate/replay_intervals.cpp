// Rules: docs/models.md#intervals
#include <algorithm>
#include <array>
#include <limits>
#include <map>

#include "simulate/replay.h"
#include "trace/forecast.h"

namespace mayfly {
namespace {

std::vector<Outlook> outlooks(const Series& series, Seconds duration, Seconds interval) {
  std::vector<Outlook> all;
  for (const Interval& i : intervals(series, interval, duration)) all.push_back({i.added, i.removed});
  return all;
}

/// What a decision for interval `at` may know of it and those after it.
class Glimpse {
 public:
  Glimpse(const std::vector<Outlook>& truth, const ReplayOptions& options)
      : truth_(truth), options_(options), parcae_({.seed = options.seed}) {}

  std::vector<Outlook> ahead(std::size_t at, int machines) {
    const auto horizon = static_cast<std::size_t>(options_.lookahead);
    if (options_.foresight == Foresight::oracle) {
      const auto end = std::min(truth_.size(), at + horizon);
      return {truth_.begin() + static_cast<std::ptrdiff_t>(at), truth_.begin() + static_cast<std::ptrdiff_t>(end)};
    }
    std::vector<Outlook> quiet(horizon);
    if (options_.foresight == Foresight::parcae && at > 0) {
      std::size_t k = 0;
      for (const Interval& i : parcae_.next(past_, options_.lookahead)) quiet[k++] = {i.added, i.removed};
      settle(quiet, machines);
    }
    if (options_.sight == Sight::informed || at == 0) quiet[0] = truth_[at];
    return quiet;
  }
  void passed(const Outlook& seen, int machines) { past_.push_back({machines, seen.added, seen.removed}); }

 private:
  /// A forecast starts from a cleaned history, so its first losses may exceed what is there.
  static void settle(std::vector<Outlook>& ahead, int machines) {
    for (Outlook& outlook : ahead) {
      outlook.removed = std::min(outlook.removed, machines);
      machines += outlook.added - outlook.removed;
    }
  }

  const std::vector<Outlook>& truth_;
  const ReplayOptions& options_;
  ParcaeForecast parcae_;
  std::vector<Interval> past_{};
};

/// Where training stands, and what it has come to.
struct Stand {
  Position position{};
  double samples = 0;
  MachineTime machine_time{};
  int changes = 0;

  /// One interval with the plan, or what fits of it.
  void take(std::optional<int> plan, const Outlook& event, const Job& job, Seconds interval) {
    const int after = position.machines + event.added - event.removed;
    const auto taken = plan ? fitted(job.shapes, *plan, after) : job.shapes.best(after);
    const double span = interval.count();
    int busy = 0;
    if (taken) {
      const Seconds cost = job.costs.expected(position.machines, position.shape, event.removed, *taken);
      if (cost.count() > 0)
        position.pending = position.pending.count() > 0 ? cost + job.costs.restart(*taken, false) : cost;
      busy = job.shapes[*taken].machines();
      const double paused = std::min(span, position.pending.count());
      samples += job.shapes.speed(*taken) * (span - paused);
      machine_time.useful += busy * (span - paused);
      machine_time.reconfigure += busy * paused;
      position.pending -= Seconds(paused);
    }
    machine_time.idle += (after - busy) * span;
    if (taken != position.shape) ++changes;
    position.machines = after;
    position.shape = taken;
  }
};

/// Liveput by intervals: steady rates against persistence, and the one that is clearly ahead decides.
class Learner {
 public:
  Learner(const Job& job, const ReplayOptions& options, int most)
      : job_(job),
        options_(options),
        weather_(most, 0),
        liveput_(job.shapes, job.costs, most,
                 {.interval = options.interval, .sight = options.sight, .horizon = 2 * options.lookahead}),
        contest_(2, kDoubt) {
    liveput_.learn(weather_);
  }

  /// `persisting` is asked for the plan of the mind that nothing changes.
  template <class Persisting>
  std::optional<int> plan(const Position& position, const Outlook& event, Persisting persisting) {
    const auto decided = [&](std::size_t mind, const Position& from) {
      return mind == 0 || !from.shape ? persisting(from) : foreseen(from, event);
    };
    const auto plan = decided(contest_.leader(), position);
    for (std::size_t mind = 0; mind < 2; ++mind) {
      const double before = imagined_[mind].samples;
      imagined_[mind].take(decided(mind, imagined_[mind].position), event, job_, options_.interval);
      contest_.earn(mind, imagined_[mind].samples - before);
    }
    return plan;
  }
  void passed(const Outlook& event) {
    if (event != Outlook{}) contest_.close();
    if (started_) weather_.observe(machines_, event);
    started_ = true;
    machines_ += event.added - event.removed;
    if (weather_.events() < learned_ * 1.15 + 1) return;
    liveput_.relearn(weather_);
    learned_ = weather_.events();
    blind_.clear();
  }

 private:
  std::optional<int> foreseen(const Position& from, const Outlook& event) const {
    if (options_.sight == Sight::blind) {
      const auto [known, fresh] = blind_.try_emplace({from.machines, *from.shape});
      if (fresh) known->second = liveput_.blind_choice(weather_.mode(), from.machines, from.shape);
      return known->second;
    }
    return liveput_.choice(weather_.next_mode(weather_.mode(), event), from.machines, from.shape, event);
  }

  /// Less than when informed: a plan that hopes in vain costs nothing, it shrinks to what is there.
  static constexpr double kDoubt = 0.5;

  const Job& job_;
  const ReplayOptions& options_;
  Weather weather_;
  Liveput liveput_;
  Contest contest_;
  std::array<Stand, 2> imagined_{};
  mutable std::map<std::pair<int, int>, std::optional<int>> blind_{};  ///< by machines and shape; rates are steady
  int machines_ = 0;
  bool started_ = false;
  double learned_ = 0;
};

int most_of(const Series& series) {
  int most = 0;
  for (const Change& change : series.changes) most = std::max(most, change.available);
  return most;
}

}  // namespace

Replay replay_by_interval(const Series& series, Seconds duration, const Job& job, const ReplayOptions& options) {
  const Series held = capped(series, job.shapes.most_machines());
  const std::vector<Outlook> truth = outlooks(held, duration, options.interval);
  const bool learns = options.policy == PolicyName::liveput && options.foresight == Foresight::none;
  Glimpse glimpse(truth, options);
  std::optional<Learner> learner;
  if (learns) learner.emplace(job, options, most_of(held));
  Replay result;
  Stand stand;
  UsdPerHour price = job.spot;
  auto next_price = held.prices.begin();
  std::map<std::pair<int, int>, std::optional<int>> persisted;  // by machines and shape, when nothing is foreseen
  for (std::size_t at = 0; at < truth.size(); ++at) {
    const Outlook& event = truth[at];
    const int before = stand.position.machines;
    const auto ahead = glimpse.ahead(at, before);
    const bool quiet = std::all_of(ahead.begin(), ahead.end(), [](const Outlook& o) { return o == Outlook{}; });
    const auto persisting = [&](const Position& position) {
      if (!quiet || position.pending.count() > 0 || !position.shape)
        return look_ahead(job.shapes, job.costs, options.interval, position, ahead);
      const auto [known, fresh] = persisted.try_emplace({position.machines, *position.shape});
      if (fresh) known->second = look_ahead(job.shapes, job.costs, options.interval, position, ahead);
      return known->second;
    };
    const auto plan = learns ? learner->plan(stand.position, event, persisting) : persisting(stand.position);
    stand.take(plan, event, job, options.interval);
    if (learns) learner->passed(event);
    glimpse.passed(event, stand.position.machines);
    const auto& taken = stand.position.shape;
    const Seconds now = options.interval * static_cast<double>(at);
    for (; next_price != held.prices.end() && next_price->time <= now; ++next_price) price = next_price->price;
    result.preemptions += event.removed;
    result.moments.push_back({now, stand.position.machines, taken ? job.shapes[*taken] : Shape{}});
    result.cost += price * (options.interval * static_cast<double>(stand.position.machines));
  }
  result.samples = stand.samples;
  result.machine_time = stand.machine_time;
  result.changes = stand.changes;
  result.time = options.interval * static_cast<double>(truth.size());
  result.cost += job.standing * result.time;
  return result;
}

double offline_optimum(const Series& series, Seconds duration, const Job& job, Seconds interval) {
  const Series held = capped(series, job.shapes.most_machines());
  const int size = job.shapes.size();
  constexpr double kUnreachable = -std::numeric_limits<double>::infinity();
  std::vector<double> samples(static_cast<std::size_t>(size) + 1, kUnreachable);
  samples.back() = 0;
  int machines = 0;
  for (const Outlook& event : outlooks(held, duration, interval)) {
    const int after = machines + event.added - event.removed;
    const MigrationCosts::Table& costs = job.costs.table(machines, event.removed);
    std::vector<double> next(samples.size(), kUnreachable);
    for (int from = 0; from <= size; ++from) {
      const double before = samples[static_cast<std::size_t>(from)];
      if (before == kUnreachable) continue;
      if (after < job.shapes.least_machines()) next.back() = std::max(next.back(), before);
      for (int to = 0; to < size; ++to) {
        if (job.shapes[to].machines() > after) continue;
        // A change longer than the interval is charged to it whole: a debt, not a carry.
        const double gain = job.shapes.speed(to) * (interval.count() - costs(from, to));
        double& best = next[static_cast<std::size_t>(to)];
        best = std::max(best, before + gain);
      }
    }
    samples = std::move(next);
    machines = after;
  }
  return *std::max_element(samples.begin(), samples.end());
}

}  // namespace mayfly
