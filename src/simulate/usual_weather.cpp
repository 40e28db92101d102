#include "simulate/usual_weather.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/rng.h"

namespace mayfly {
namespace {

constexpr double kGivenUp = 10;  ///< deadlines (or planned times) after which a run counts as never finished
/// Losses drawn for one plan at most; the more there are in one window, the fewer windows.
constexpr double kMostLosses = 300'000;
constexpr int kFewestWindows = 400;
/// Changes after which a window goes on as it went so far: what is left no longer depends on single losses.
constexpr int kLongRun = 1000;

/// Machines of one line of a plan.
struct Held {
  std::size_t kind = 0;
  int count = 0;
  double rate = 0;  ///< USD/h of one
  bool spot = false;
  SpotWeather weather{};
};

/// Machines that are away and come back together.
struct Away {
  double until = 0;
  std::size_t line = 0;
  int count = 0;
};

/// A plan's cluster, and how fast what is left of it trains.
class Cluster {
 public:
  Cluster(const PlanOption& option, const Problem& problem, const Candidate& candidate, const Catalog& catalog,
          const WeatherTable& table)
      : problem_(problem), evaluator_(problem), server_(candidate.server) {
    for (const PlanLine& line : option.cluster) {
      const InstanceType* type = catalog.find(line.type);
      Held held{.kind = kind_of(line.type),
                .count = line.count,
                .rate = line.rate.value,
                .spot = line.market == Market::spot};
      if (held.spot && type != nullptr) held.weather = table.of(*type);
      lines.push_back(held);
    }
    for (const PlanLine& line : option.servers) standing += line.count * line.rate.value;
  }

  std::vector<Held> lines{};
  double standing = 0;  ///< USD/h of the servers

  /// Shares of the job per second with so many machines of each line.
  double pace(const std::vector<int>& there) {
    const auto known = paces_.find(there);
    if (known != paces_.end()) return known->second;
    std::vector<int> counts(problem_.kinds.size());
    for (std::size_t i = 0; i < lines.size(); ++i) counts[lines[i].kind] += there[i];
    std::vector<Group> groups;
    int machines = 0;
    for (std::size_t k = 0; k < counts.size(); ++k) {
      machines += counts[k];
      if (counts[k] > 0) groups.push_back({&problem_.kinds[k].worker, counts[k]});
    }
    double pace = 0;
    if (machines > 0) {
      const Speed speed = cluster_speed(problem_.predictor, problem_.job, groups, problem_.servers[server_].pool);
      const auto work = evaluator_.work(speed, machines);
      if (work && speed.updates_per_s > 0) pace = *work > 0 ? speed.updates_per_s / *work : 1e9;
    }
    return paces_.emplace(there, pace).first->second;
  }

 private:
  std::size_t kind_of(const std::string& type) const {
    for (std::size_t k = 0; k < problem_.kinds.size(); ++k) {
      for (const Offer& offer : problem_.kinds[k].ladder) {
        if (offer.type == type) return k;
      }
    }
    return 0;
  }

  const Problem& problem_;
  Evaluator evaluator_;
  std::size_t server_;
  std::map<std::vector<int>, double> paces_{};
};

/// What every window has in common.
struct Setting {
  double start = 0;     ///< s until machines are up, paid
  double recovery = 0;  ///< s in which nobody trains after a change; 0 where workers do not wait for each other
  double limit = 0;     ///< s, then it never ends
  double relative_sd = 0;
};

class Window {
 public:
  Window(Cluster& cluster, const Setting& setting, Rng& rng) : cluster_(cluster), setting_(setting), rng_(rng) {
    for (const Held& line : cluster.lines) {
      there_.push_back(line.count);
      hazards_.push_back(line.spot ? line.weather.losses_per_hour / 3600 * std::exp(line.weather.spread * rng.normal())
                                   : 0);
    }
  }

  WindowRun run() {
    const double work = std::exp(setting_.relative_sd * rng_.normal());
    double left = work;
    int changes = 0;
    pass(setting_.start);
    double still = 0;  // until training goes on
    while (time_ < setting_.limit) {
      const double pace = cluster_.pace(there_);
      const double change = std::min(next_loss(), away_.empty() ? kForever : soonest()->until);
      const double done = pace > 0 ? time_ + still + left / pace : kForever;
      const double until = std::min({done, change, setting_.limit});
      left -= pace * std::max(0.0, until - time_ - still);
      still = std::max(0.0, still - (until - time_));
      pass(until - time_);
      if (done <= change && done <= setting_.limit) return {.time = time_, .cost = cost_ / 3600, .finished = true};
      if (until < change) break;
      if (++changes > kLongRun) return gone_on(left, work);
      if (!away_.empty() && soonest()->until <= change) {
        there_[soonest()->line] += soonest()->count;
        away_.erase(soonest());
      } else {
        lose();
      }
      still = setting_.recovery;
      loss_ = kForever;
    }
    return {.time = time_, .cost = cost_ / 3600};
  }

 private:
  static constexpr double kForever = std::numeric_limits<double>::infinity();

  WindowRun gone_on(double left, double work) const {
    if (left >= work) return {.time = time_, .cost = cost_ / 3600};
    const double times = work / (work - left);
    return {.time = time_ * times, .cost = cost_ / 3600 * times, .finished = time_ * times <= setting_.limit};
  }

  void pass(double seconds) {
    double hourly = cluster_.standing;
    for (std::size_t i = 0; i < there_.size(); ++i) hourly += there_[i] * cluster_.lines[i].rate;
    cost_ += hourly * seconds;
    time_ += seconds;
  }

  /// Losing moments of a line per second: fewer than machines lost, as some take several.
  double events(std::size_t i) const {
    const double together = there_[i] > 1 ? cluster_.lines[i].weather.together : 0;
    return there_[i] * hazards_[i] / (1 - together + together * (there_[i] + 2) / 2);
  }
  /// Memoryless, so that it may be drawn anew after every change.
  double next_loss() {
    if (loss_ != kForever) return loss_;
    double rate = 0;
    for (std::size_t i = 0; i < there_.size(); ++i) rate += events(i);
    loss_ = rate > 0 ? time_ + rng_.exponential(1 / rate) : kForever;
    return loss_;
  }
  void lose() {
    double all = 0;
    for (std::size_t i = 0; i < there_.size(); ++i) all += events(i);
    double at = rng_.uniform() * all;
    std::size_t line = 0;
    for (std::size_t i = 0; i < there_.size(); ++i) {
      if (events(i) <= 0) continue;
      line = i;
      if ((at -= events(i)) <= 0) break;
    }
    const SpotWeather& weather = cluster_.lines[line].weather;
    const bool several = there_[line] > 1 && rng_.chance(weather.together);
    const int count = several ? 2 + rng_.below(there_[line] - 1) : 1;
    there_[line] -= count;
    away_.push_back({time_ + rng_.exponential(weather.wait.count()), line, count});
  }
  std::vector<Away>::iterator soonest() {
    return std::min_element(away_.begin(), away_.end(), [](const Away& a, const Away& b) { return a.until < b.until; });
  }

  Cluster& cluster_;
  const Setting& setting_;
  Rng& rng_;
  std::vector<int> there_;
  std::vector<double> hazards_;
  std::vector<Away> away_;
  double time_ = 0;
  double cost_ = 0;
  double loss_ = kForever;
};

int windows_for(const Cluster& cluster, double time, int asked) {
  double losses = 0;
  for (const Held& line : cluster.lines)
    losses += line.spot ? line.count * line.weather.losses_per_hour / 3600 * time : 0;
  return std::clamp(static_cast<int>(kMostLosses / (1 + losses)), std::min(asked, kFewestWindows), asked);
}

}  // namespace

RiskOfPlan usual_risk(const Catalog& catalog, const PlanRequest& request, const WeatherTable& table,
                      const RiskOptions& options) {
  return [&, all = options](const PlanOption& option, const Problem* problem, const Candidate* candidate,
                            Care care) -> Result<Risk> {
    const RiskOptions own = with_care(all, care);
    const Seconds elapsed = request.progress ? request.progress->elapsed : Seconds{0};
    RiskQuestion question{.planned = Seconds(option.time)};
    if (request.budget) question.budget = Usd{request.budget->value - option.beside};
    if (request.deadline) question.deadline = *request.deadline - elapsed;
    if (problem == nullptr) return steady_risk(option, question, own);
    Cluster cluster(option, *problem, *candidate, catalog, table);
    Setting setting{.start = option.lead,
                    .recovery = usual_recovery(*problem->profile, table).count(),
                    .relative_sd = predicted_sd(*problem, *candidate)};
    const double promised = question.deadline ? question.deadline->count() : 0;
    setting.limit = kGivenUp * std::max(promised, option.time) + setting.start;
    Rng rng(own.seed);
    std::vector<WindowRun> runs;
    for (int i = windows_for(cluster, option.time, own.windows); i > 0; --i)
      runs.push_back(Window(cluster, setting, rng).run());
    return risk_of(runs, question, static_cast<double>(runs.size()));
  };
}

Seconds usual_recovery(const Profile& profile, const WeatherTable& table) {
  const bool waits = profile.sync == Sync::bsp;
  return waits ? profile.recovery.value_or(table.recovery) : Seconds{0};
}

bool as_published(const PlanRequest& request) {
  return request.predictor != Predictor::queue || request.search == SearchMethod::window;
}

}  // namespace mayfly
