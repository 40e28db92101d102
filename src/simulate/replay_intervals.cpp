// Rules: docs/models.md#intervals
#include <algorithm>
#include <limits>

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

}  // namespace

Replay replay_by_interval(const Series& series, Seconds duration, const Job& job, const ReplayOptions& options) {
  const Series held = capped(series, job.shapes.most_machines());
  const std::vector<Outlook> truth = outlooks(held, duration, options.interval);
  const bool learns = options.policy == PolicyName::liveput && options.foresight == Foresight::none;
  int most = 0;
  for (const Change& change : held.changes) most = std::max(most, change.available);
  Glimpse glimpse(truth, options);
  Weather weather(most, 0);
  Liveput liveput(job.shapes, job.costs, most,
                  {.interval = options.interval, .sight = options.sight, .horizon = 2 * options.lookahead});
  if (learns) liveput.learn(weather);
  double learned = 0;
  Replay result;
  Position position;
  for (std::size_t at = 0; at < truth.size(); ++at) {
    const Outlook& event = truth[at];
    const int after = position.machines + event.added - event.removed;
    std::optional<int> plan;
    if (!learns) {
      plan = look_ahead(job.shapes, job.costs, options.interval, position, glimpse.ahead(at, position.machines));
    } else if (options.sight == Sight::blind && position.shape) {
      plan = liveput.blind_choice(weather.mode(), position.machines, position.shape);
    } else {
      plan = liveput.choice(weather.next_mode(weather.mode(), event), position.machines, position.shape, event);
    }
    if (at > 0) weather.observe(position.machines, event);
    const auto taken = plan ? fitted(job.shapes, *plan, after) : job.shapes.best(after);
    const double span = options.interval.count();
    if (taken) {
      const Seconds cost = job.costs.expected(position.machines, position.shape, event.removed, *taken);
      if (cost.count() > 0)
        position.pending = position.pending.count() > 0 ? cost + job.costs.restart(*taken, false) : cost;
      const int busy = job.shapes[*taken].machines();
      const double paused = std::min(span, position.pending.count());
      result.samples += job.shapes.speed(*taken) * (span - paused);
      result.machine_time.useful += busy * (span - paused);
      result.machine_time.reconfigure += busy * paused;
      result.machine_time.idle += (after - busy) * span;
      position.pending -= Seconds(paused);
    } else {
      result.machine_time.idle += after * span;
    }
    if (taken != position.shape) ++result.changes;
    result.preemptions += event.removed;
    result.moments.push_back({options.interval * static_cast<double>(at), after, taken ? job.shapes[*taken] : Shape{}});
    result.cost += job.spot * (options.interval * static_cast<double>(after));
    position.machines = after;
    position.shape = taken;
    glimpse.passed(event, after);
    if (learns && weather.events() >= learned * 1.15 + 1) {
      liveput.learn(weather);
      learned = weather.events();
    }
  }
  result.time = options.interval * static_cast<double>(truth.size());
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
