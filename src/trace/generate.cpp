#include "trace/generate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/rng.h"

// Time runs in small steps. In each, machine i has a chance p_i to be lost, from its age and the hour of day. If losses
// came singly, events would number S = sum of p_i. They come K at a time, so an event happens with chance S / E[K] and
// takes machine i with chance K p_i / S: each machine still lives as its lifetime says, whatever the sizes of events.
// docs/models.md#generated-traces
namespace mayfly {
namespace {

double bathtub(const BathtubLife& life, double age) {
  const double t = std::min(age, life.b.count());
  return life.a * (1 - std::exp(-t / life.tau1.count()) + std::exp((t - life.b.count()) / life.tau2.count()));
}

/// Where every life ends.
double limit(const Lifetime& life) {
  if (const auto* tub = std::get_if<BathtubLife>(&life)) return tub->b.count();
  if (const auto* table = std::get_if<LifeTable>(&life)) return 3600.0 * static_cast<double>(table->died.size());
  return std::numeric_limits<double>::infinity();
}

}  // namespace

double dead_by(const Lifetime& life, Seconds age) {
  const double t = std::max(0.0, age.count());
  if (t >= limit(life)) return 1;
  if (const auto* exponential = std::get_if<ExponentialLife>(&life)) return -std::expm1(-t / exponential->mean.count());
  if (const auto* tub = std::get_if<BathtubLife>(&life))
    return (bathtub(*tub, t) - bathtub(*tub, 0)) / (bathtub(*tub, tub->b.count()) - bathtub(*tub, 0));
  const auto& table = std::get<LifeTable>(life);
  // Within an hour the danger is constant.
  const auto hour = static_cast<std::size_t>(t / 3600);
  const double before =
      std::accumulate(table.died.begin(), table.died.begin() + static_cast<std::ptrdiff_t>(hour), 0.0);
  const double alive = table.machines - before;
  if (alive <= 0) return 1;
  return 1 - alive / table.machines * std::pow(1 - table.died[hour] / alive, t / 3600 - static_cast<double>(hour));
}

Seconds mean_lifetime(const Lifetime& life) {
  if (const auto* exponential = std::get_if<ExponentialLife>(&life)) return exponential->mean;
  constexpr int kParts = 24 * 360;
  const double width = limit(life) / kParts;
  double alive = 0;
  for (int i = 0; i < kParts; ++i) alive += 1 - dead_by(life, Seconds((i + 0.5) * width));
  return Seconds(alive * width);
}

namespace {

/// Accumulated danger in the step that starts at an age of k steps: minus the log of the chance to survive it.
class Danger {
 public:
  Danger(const Lifetime& life, double step) {
    const double end = limit(life);
    double alive = 1;
    for (int k = 0; alive > 0; ++k) {
      const double left = 1 - dead_by(life, Seconds((k + 1) * step));
      by_age_.push_back(left > 0 ? std::log(alive / left) : std::numeric_limits<double>::infinity());
      if (!std::isfinite(end)) break;
      alive = left;
    }
  }
  double at(long age) const { return by_age_[std::min(static_cast<std::size_t>(age), by_age_.size() - 1)]; }

 private:
  std::vector<double> by_age_;
};

/// How many machines an event takes of those held: one, 2 + Poisson but never all, or all.
class EventSizes {
 public:
  explicit EventSizes(const GeneratorOptions& options) : all_(options.share_to_zero) {
    chances_ = {0, 1 - options.share_multi};
    const double excess = options.mean_multi - 2;
    double chance = std::exp(-excess);
    double sum = 0;
    for (int k = 0; sum < 1 - 1e-12 && k < 10000; ++k) {
      chances_.push_back((options.share_multi - all_) * chance);
      sum += chance;
      chance *= excess / (k + 1);
    }
    for (int held = 0; held <= options.machines; ++held)
      means_.push_back(expected(held, [](int size) { return static_cast<double>(size); }));
  }
  double mean(int held) const { return means_[static_cast<std::size_t>(held)]; }
  int draw(int held, Rng& rng) const {
    double u = rng.uniform();
    if (u < all_) return held;
    u -= all_;
    std::size_t size = 1;
    for (; size + 1 < chances_.size() && u >= chances_[size]; ++size) u -= chances_[size];
    return taken(static_cast<int>(size), held);
  }
  double expected(int held, const auto& of_size) const {
    double sum = all_ * of_size(held);
    for (std::size_t size = 1; size < chances_.size(); ++size)
      sum += chances_[size] * of_size(taken(static_cast<int>(size), held));
    return sum;
  }

 private:
  static int taken(int size, int held) { return std::min(size, std::max(1, held - 1)); }
  double all_;
  std::vector<double> chances_;  ///< by size
  std::vector<double> means_;    ///< by machines held
};

struct Machine {
  long born = 0;    ///< step
  Seconds begin{};  ///< as observed
  double lost = 0;  ///< chance in this step
};

/// The machines of one zone while time passes.
class Zone {
 public:
  Zone(const GeneratorOptions& options, int parts, Rng rng)
      : options_(options),
        parts_(parts),
        step_(options.gap.count() / parts),
        danger_(options.lifetime, step_),
        sizes_(options),
        mean_hour_(std::accumulate(options.hours.begin(), options.hours.end(), 0.0) / 24),
        rng_(rng) {}

  Series series(const std::string& zone) {
    Series made{.type = options_.type, .zone = zone};
    const auto observations = static_cast<long>(std::llround(options_.duration / options_.gap));
    for (int i = 0; i < options_.machines; ++i) held_.push_back({});
    made.changes.push_back({.added = options_.machines, .available = options_.machines});
    for (long k = 1; k < observations; ++k) {
      now_ = options_.gap * static_cast<double>(k);
      const auto before = static_cast<int>(held_.size());
      std::vector<Stay> ended;
      for (int part = 0; part < parts_; ++part) advance((k - 1) * parts_ + part, ended);
      // Those that came and went between two observations were never seen.
      std::erase_if(ended, [](const Stay& stay) { return stay.begin == stay.end; });
      const auto removed = static_cast<int>(ended.size());
      const auto after = static_cast<int>(held_.size());
      if (removed > 0 || after != before)
        made.changes.push_back(
            {.time = now_, .added = after - before + removed, .removed = removed, .available = after});
      made.stays.insert(made.stays.end(), ended.begin(), ended.end());
    }
    for (const Machine& machine : held_)
      made.stays.push_back({.begin = machine.begin, .end = options_.gap * static_cast<double>(observations)});
    std::stable_sort(made.stays.begin(), made.stays.end(),
                     [](const Stay& a, const Stay& b) { return a.begin < b.begin; });
    return made;
  }

 private:
  void advance(long step, std::vector<Stay>& ended) {
    std::vector<bool> taken = losses(step);
    if (drought_until_ <= step && rng_.chance(-std::expm1(-options_.droughts_per_day * step_ / 86400))) {
      drought_until_ = step + std::max(1L, std::lround(rng_.exponential(options_.drought_length.count()) / step_));
      begin_drought(taken);
    }
    const auto waiting = options_.machines - static_cast<int>(held_.size());
    std::size_t kept = 0;
    for (std::size_t i = 0; i < held_.size(); ++i) {
      if (taken[i]) {
        ended.push_back({.begin = held_[i].begin, .end = now_, .preempted = true});
      } else {
        held_[kept++] = held_[i];
      }
    }
    held_.resize(kept);
    if (step < drought_until_) return;
    const double chance = options_.rejoin.count() > 0 ? -std::expm1(-step_ / options_.rejoin.count()) : 1;
    for (int i = 0; i < waiting; ++i) {
      if (rng_.chance(chance)) held_.push_back({.born = step + 1, .begin = now_});
    }
  }

  std::vector<bool> losses(long step) {
    const auto hour = static_cast<std::size_t>(std::fmod(static_cast<double>(step) * step_ / 3600, 24));
    const double weight = options_.hours[hour] / mean_hour_;
    double sum = 0;
    double most = 0;
    for (Machine& machine : held_) {
      const double danger = danger_.at(step - machine.born);
      // A life's limit holds at every hour of the day, also at those without danger.
      machine.lost = std::isfinite(danger) ? -std::expm1(-weight * danger) : 1;
      sum += machine.lost;
      most = std::max(most, machine.lost);
    }
    std::vector<bool> taken(held_.size(), false);
    if (sum <= 0) return taken;
    const auto held = static_cast<int>(held_.size());
    const double event = std::min(1.0, sum / sizes_.mean(held));
    if (rng_.chance(event)) {
      // One uniform number and a comb of width one over the chances laid end to end: each is hit as often as it should.
      const double size = sizes_.draw(held, rng_);
      double at = rng_.uniform();
      for (std::size_t i = 0; i < held_.size(); ++i) {
        at += std::min(1.0, size * held_[i].lost / sum);
        if (at < 1 - 1e-9) continue;
        taken[i] = true;
        at -= 1;
      }
    }
    if (event == 1 || most * held > sum * (1 + 1e-9)) take_singly(event, sum, taken);
    return taken;
  }

  /// A chance cannot exceed one: what events could not take of a machine in great danger, it suffers alone.
  void take_singly(double event, double sum, std::vector<bool>& taken) {
    const auto held = static_cast<int>(held_.size());
    for (std::size_t i = 0; i < held_.size(); ++i) {
      const double lost = held_[i].lost;
      const double by_event = event * sizes_.expected(held, [&](int size) { return std::min(1.0, size * lost / sum); });
      if (lost - by_event > 1e-12 && rng_.chance((lost - by_event) / (1 - by_event))) taken[i] = true;
    }
  }

  void begin_drought(std::vector<bool>& taken) {
    auto left = static_cast<int>(std::count(taken.begin(), taken.end(), false));
    std::vector<std::size_t> order(taken.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (std::size_t i = order.size(); i > 1; --i)
      std::swap(order[i - 1], order[static_cast<std::size_t>(rng_.below(static_cast<int>(i)))]);
    for (const std::size_t i : order) {
      if (left <= options_.drought_level) break;
      if (taken[i]) continue;
      taken[i] = true;
      --left;
    }
  }

  const GeneratorOptions& options_;
  int parts_;
  double step_;  ///< seconds
  Danger danger_;
  EventSizes sizes_;
  double mean_hour_;
  Rng rng_;
  Seconds now_{};  ///< the next observation
  std::vector<Machine> held_{};
  long drought_until_ = 0;
};

/// Looked at once an hour, or once a gap where that is longer; in hundredths of a cent.
std::vector<PricePoint> prices(const GeneratorOptions& options, Rng rng) {
  std::vector<PricePoint> points;
  if (!options.price) return points;
  const Seconds every = std::max(options.gap, Seconds(Hours(1)));
  const double kept = std::exp(-every / options.price_memory);
  const double spread = options.price_volatility;
  double deviation = spread * rng.normal();
  for (Seconds time{}; time < options.duration; time += every) {
    const double price = options.price->value * std::exp(deviation - spread * spread / 2);
    const UsdPerHour rounded{std::max(1.0, std::round(price * 1e4)) / 1e4};
    if (points.empty() || points.back().price != rounded) points.push_back({.time = time, .price = rounded});
    deviation = kept * deviation + spread * std::sqrt(1 - kept * kept) * rng.normal();
  }
  return points;
}

Result<void> checked_lifetime(const Lifetime& life) {
  if (const auto* exponential = std::get_if<ExponentialLife>(&life); exponential && !(exponential->mean.count() > 0))
    return fail("lifetime mean {} s: want more than 0", exponential->mean.count());
  if (const auto* tub = std::get_if<BathtubLife>(&life)) {
    for (const double number : {tub->a, tub->tau1.count(), tub->tau2.count(), tub->b.count()})
      if (!(number > 0)) return fail("bathtub {}: want numbers above 0", number);
  }
  if (const auto* table = std::get_if<LifeTable>(&life)) {
    const bool negative = std::any_of(table->died.begin(), table->died.end(), [](int died) { return died < 0; });
    if (negative || table->died.empty() || table->machines < std::accumulate(table->died.begin(), table->died.end(), 1))
      return fail("life table of {} machines: want more than die in it", table->machines);
  }
  return {};
}

Result<void> checked(const GeneratorOptions& options) {
  if (options.machines < 1 || options.machines > 10000) return fail("{} machines: want 1 to 10000", options.machines);
  if (!(options.gap.count() >= 1)) return fail("gap {} s: want at least 1 s", options.gap.count());
  const double observations = options.duration / options.gap;
  if (!(observations >= 1)) return fail("duration {} s: want at least one gap", options.duration.count());
  if (const auto sound = checked_lifetime(options.lifetime); !sound) return sound;
  for (auto zone = options.zones.begin(); zone != options.zones.end(); ++zone)
    if (std::find(options.zones.begin(), zone, *zone) != zone) return fail("zone '{}' twice", *zone);
  for (const double weight : options.hours)
    if (!(weight >= 0 && std::isfinite(weight))) return fail("weight {} of an hour: want 0 or more", weight);
  if (!(std::accumulate(options.hours.begin(), options.hours.end(), 0.0) > 0)) return fail("no hour has any weight");
  if (!(options.share_multi >= 0 && options.share_multi <= 1))
    return fail("share of events that take several {}: want 0 to 1", options.share_multi);
  if (!(options.share_to_zero >= 0 && options.share_to_zero <= options.share_multi))
    return fail("share of events that take all {}: want 0 to the share that take several, {}", options.share_to_zero,
                options.share_multi);
  if (!(options.mean_multi >= 2 && options.mean_multi <= 100))
    return fail("mean size of events that take several {}: want 2 to 100", options.mean_multi);
  if (options.machines == 1 && options.share_multi > 0)
    return fail("share of events that take several {}: want 0 with one machine", options.share_multi);
  if (!(options.rejoin.count() >= 0)) return fail("rejoin {} s: want 0 or more", options.rejoin.count());
  if (!(options.droughts_per_day >= 0 && std::isfinite(options.droughts_per_day)))
    return fail("droughts per day {}: want 0 or more", options.droughts_per_day);
  if (!(options.drought_length.count() > 0 && options.drought_length.count() < 1e9))
    return fail("drought length {} s: want more than 0, less than 10^9", options.drought_length.count());
  if (options.drought_level < 0) return fail("drought level {}: want 0 or more", options.drought_level);
  if (options.price && !(options.price->value > 0)) return fail("price {}: want more than 0", options.price->value);
  if (!(options.price_volatility >= 0 && options.price_volatility <= 2))
    return fail("price volatility {}: want 0 to 2", options.price_volatility);
  if (!(options.price_memory.count() > 0))
    return fail("price memory {} s: want more than 0", options.price_memory.count());
  return {};
}

}  // namespace

Result<Trace> generated_trace(const GeneratorOptions& options) {
  if (const auto sound = checked(options); !sound) return unexpected(sound.error());
  // So fine that two events seldom fall into one step and look like one.
  const double per_gap =
      options.machines * (options.gap / mean_lifetime(options.lifetime)) / EventSizes(options).mean(options.machines);
  const int parts = static_cast<int>(std::clamp(std::ceil(per_gap / 0.2), 1.0, 100.0));
  const double zones = static_cast<double>(std::max<std::size_t>(1, options.zones.size()));
  const double work = options.duration / options.gap * parts * options.machines * zones;
  if (!(work <= 1e9))
    return fail("{} machines for {} s in steps of {} s: {:.3g} steps of a machine, want at most 10^9", options.machines,
                options.duration.count(), options.gap.count() / parts, work);
  if (std::isfinite(limit(options.lifetime)) && !(limit(options.lifetime) / options.gap.count() * parts <= 1e7))
    return fail("lifetimes of up to {} s in steps of {} s: want at most 10^7 steps", limit(options.lifetime),
                options.gap.count() / parts);
  Trace trace{.name = options.name, .gap = options.gap};
  trace.duration = options.gap * std::round(options.duration / options.gap);
  Rng rng(options.seed);
  for (const std::string& zone : options.zones.empty() ? std::vector<std::string>{""} : options.zones) {
    trace.series.push_back(Zone(options, parts, rng.child()).series(zone));
    trace.series.back().prices = prices(options, rng.child());
  }
  return trace;
}

}  // namespace mayfly
