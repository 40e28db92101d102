#include "control/policy.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "control/promised.h"

namespace mayfly {
namespace {

constexpr std::array<std::string_view, 9> kPolicyNames{"on-demand", "checkpoint", "redundant", "template", "reactive",
                                                       "persist",   "liveput",    "deadline",  "ideal"};

/// The fastest shape for what is there. Where changes go through a checkpoint it starts anew on every event.
class Fastest : public Policy {
 public:
  Fastest(const Shapes& shapes, Mechanism mechanism) : shapes_(shapes), mechanism_(mechanism) {}
  Decision decide(const Situation& s) override {
    const bool changed = s.outlook != Outlook{};
    return {.shape = shapes_.best(s.machines()),
            .rebuild = mechanism_ == Mechanism::reload && changed,
            .mechanism = mechanism_,
            .reason = "fastest shape for the machines there are"};
  }

 private:
  const Shapes& shapes_;
  Mechanism mechanism_;
};

/// Losses restart everything at once; growth is looked for every so often.
class CheckpointRestart : public Policy {
 public:
  CheckpointRestart(const Shapes& shapes, Seconds poll) : shapes_(shapes), poll_(poll) {}
  Decision decide(const Situation& s) override {
    Decision decision{.shape = s.shape, .mechanism = Mechanism::rewind, .reason = "newcomers wait for the next poll"};
    const auto best = shapes_.best(s.machines());
    const bool due = s.now >= next_;
    if (s.outlook.removed > 0 || !s.shape || (due && best != s.shape)) {
      decision.shape = best;
      decision.rebuild = true;
      decision.reason = "restart from the checkpoint";
      next_ = s.now + poll_;
    } else if (due) {
      next_ = s.now + poll_;
    }
    if (best != decision.shape) decision.again = next_;
    return decision;
  }

 private:
  const Shapes& shapes_;
  Seconds poll_;
  Seconds next_{};
};

/// As many pipelines of one depth as there are machines for.
class FixedDepth : public Policy {
 public:
  explicit FixedDepth(const Shapes& shapes) : shapes_(shapes), stages_(redundant_depth(shapes)) {}
  Decision decide(const Situation& s) override {
    std::optional<int> shape;
    for (int width = s.machines() / stages_; width > 0 && !shape; --width) shape = shapes_.find({width, stages_});
    return {.shape = shape, .mechanism = Mechanism::shadow, .reason = "pipelines of one depth"};
  }

 private:
  const Shapes& shapes_;
  int stages_;
};

/// A plan may be to wait: spares are cheaper to take in once they are warm. So where a faster shape would fit, the
/// question is put again for a few intervals after an event.
class SecondThoughts {
 public:
  std::optional<Seconds> again(const Shapes& shapes, const Situation& s, std::optional<int> taken, Seconds interval) {
    if (s.outlook != Outlook{}) asked_ = 0;
    if (taken == shapes.best(s.machines()) || asked_ >= kMost) return std::nullopt;
    ++asked_;
    return s.now + interval;
  }

 private:
  static constexpr int kMost = 2;
  int asked_ = 0;
};

/// The look-ahead told that nothing will change.
class Persist : public Policy {
 public:
  Persist(const Shapes& shapes, const MigrationCosts& costs, const PolicyOptions& options)
      : shapes_(shapes), interval_(options.interval), ahead_(shapes, costs, options.interval, options.lookahead) {}

  Decision decide(const Situation& s) override {
    const auto taken = choice(s);
    return {.shape = taken,
            .again = thoughts_.again(shapes_, s, taken, interval_),
            .reason = "most samples if nothing changes"};
  }
  std::optional<int> choice(const Situation& s) const {
    return ahead_.choice({s.before, s.shape, s.pending}, s.outlook);
  }

 private:
  const Shapes& shapes_;
  Seconds interval_;
  QuietLookAhead ahead_;
  SecondThoughts thoughts_{};
};

/// mayfly's own. Three minds watch the same weather: one holds that nothing changes, one that losses and arrivals come
/// at steady rates, one that they come in bursts. A forecast is believed only where it has beaten persistence in
/// samples.
class LiveputPolicy : public Policy {
 public:
  LiveputPolicy(const Shapes& shapes, const MigrationCosts& costs, const PolicyOptions& options)
      : shapes_(shapes), costs_(costs), options_(options), persistence_(shapes, costs, options) {
    for (const int memory : {0, kBurstMemory}) {
      minds_.push_back({.weather = Weather(options.most_machines, memory),
                        .liveput = Liveput(shapes, costs, options.most_machines,
                                           {.interval = options.interval, .horizon = 2 * options.lookahead})});
    }
    accounts_.resize(minds_.size() + 1);
  }

  Decision decide(const Situation& s) override {
    observe(s);
    for (std::size_t at = 0; at < accounts_.size(); ++at) contest_.earn(at, earned(accounts_[at], s));
    if (s.outlook != Outlook{}) contest_.close();
    for (std::size_t at = 0; at < accounts_.size(); ++at) advance(accounts_[at], s, at);
    const std::size_t ahead = contest_.leader();
    static constexpr std::array<std::string_view, 3> kReasons{
        "most samples if nothing changes", "most samples expected at steady rates", "most samples expected in bursts"};
    last_ = s.now;
    started_ = true;
    const auto taken = choice(ahead, s);
    return {.shape = taken,
            .again = thoughts_.again(shapes_, s, taken, options_.interval),
            .reason = std::string(kReasons[ahead])};
  }

 private:
  static constexpr int kBurstMemory = 3;
  /// New evidence, as a share of the old, that is worth learning from.
  static constexpr double kFresh = 0.15;
  static constexpr double kDoubt = 1.5;

  struct Mind {
    Weather weather;
    Liveput liveput;
    double learned = -1;  ///< events known to the values
  };
  /// What a mind would have had.
  struct Account {
    std::optional<int> shape{};
    Seconds pending{0};
  };

  void observe(const Situation& s) {
    // The first machines are the start, not an arrival.
    const auto quiet = started_ ? std::lround((s.now - last_) / options_.interval) - 1 : -1;
    for (Mind& mind : minds_) {
      if (started_) {
        for (long i = 0; i < std::min(quiet, kLongestQuiet); ++i) mind.weather.observe(s.before, {});
        mind.weather.observe(s.before, s.outlook);
      }
      const double events = mind.weather.events();
      if (mind.learned >= 0 && events < mind.learned * (1 + kFresh) + 1) continue;
      mind.liveput.relearn(mind.weather);
      mind.learned = events;
    }
  }

  std::optional<int> choice(std::size_t mind, const Situation& s) const {
    if (mind == 0) return persistence_.choice(s);
    const Mind& chosen = minds_[mind - 1];
    return chosen.liveput.choice(chosen.weather.mode(), s.before, s.shape, s.outlook);
  }

  /// Samples since the last decision.
  double earned(const Account& account, const Situation& s) const {
    if (!account.shape || !started_) return 0;
    return shapes_.speed(*account.shape) * std::max(0.0, (s.now - last_ - account.pending).count());
  }

  void advance(Account& account, const Situation& s, std::size_t mind) const {
    const Seconds passed = started_ ? s.now - last_ : Seconds(0);
    account.pending = std::max(Seconds(0), account.pending - passed);
    Situation imagined = s;
    imagined.shape = account.shape;
    imagined.pending = account.pending;
    const auto taken = choice(mind, imagined);
    if (taken) {
      const Seconds cost = costs_.expected(s.before, account.shape, s.outlook.removed, *taken);
      if (cost.count() > 0) account.pending = account.pending.count() > 0 ? cost + costs_.restart(*taken, false) : cost;
    }
    account.shape = taken;
  }

  /// Intervals of quiet after which more teach nothing new at once.
  static constexpr long kLongestQuiet = 10'000;

  const Shapes& shapes_;
  const MigrationCosts& costs_;
  PolicyOptions options_;
  Persist persistence_;
  std::vector<Mind> minds_{};
  std::vector<Account> accounts_{};
  Contest contest_{3, kDoubt};
  SecondThoughts thoughts_{};
  Seconds last_{};
  bool started_ = false;
};

}  // namespace

std::optional<double> Holding::lost_per_hour() const {
  if (machine_time.count() <= 0) return std::nullopt;
  return lost / Hours(machine_time).count();
}

int Situation::usable(Market market) const {
  int sum = 0;
  for (const Holding& holding : holdings) sum += holding.kind.market == market ? holding.usable : 0;
  return sum;
}

int Situation::ordered(Market market) const {
  int sum = 0;
  for (const Holding& holding : holdings) sum += holding.kind.market == market ? holding.ordered : 0;
  return sum;
}

std::string_view name(PolicyName policy) { return kPolicyNames[static_cast<std::size_t>(policy)]; }

std::optional<PolicyName> policy_named(std::string_view word) {
  const auto found = std::find(kPolicyNames.begin(), kPolicyNames.end(), word);
  if (found == kPolicyNames.end()) return std::nullopt;
  return static_cast<PolicyName>(found - kPolicyNames.begin());
}

const std::vector<std::string>& policy_names() {
  static const std::vector<std::string> names(kPolicyNames.begin(), kPolicyNames.end());
  return names;
}

Mechanism mechanism(PolicyName policy) {
  switch (policy) {
    case PolicyName::on_demand:
      return Mechanism::start;
    case PolicyName::checkpoint:
      return Mechanism::rewind;
    case PolicyName::redundant:
      return Mechanism::shadow;
    case PolicyName::template_:
      return Mechanism::regroup;
    case PolicyName::reactive:
      return Mechanism::reload;
    case PolicyName::ideal:
      return Mechanism::free;
    case PolicyName::persist:
    case PolicyName::liveput:
    case PolicyName::deadline:
      break;
  }
  return Mechanism::migrate;
}

int redundant_depth(const Shapes& shapes) {
  const double wanted = 1.5 * shapes[*shapes.best(shapes.most_machines())].stages;
  std::optional<int> above;
  int deepest = 0;
  for (const Shape& shape : shapes.all()) {
    deepest = std::max(deepest, shape.stages);
    if (shape.stages >= wanted && (!above || shape.stages < *above)) above = shape.stages;
  }
  return above.value_or(deepest);
}

std::unique_ptr<Policy> make_policy(PolicyName name, const Shapes& shapes, const MigrationCosts& costs,
                                    const PolicyOptions& options) {
  switch (name) {
    case PolicyName::on_demand:
    case PolicyName::template_:
    case PolicyName::reactive:
    case PolicyName::ideal:
      return std::make_unique<Fastest>(shapes, mechanism(name));
    case PolicyName::checkpoint:
      return std::make_unique<CheckpointRestart>(shapes, options.poll);
    case PolicyName::redundant:
      return std::make_unique<FixedDepth>(shapes);
    case PolicyName::persist:
      return std::make_unique<Persist>(shapes, costs, options);
    case PolicyName::liveput:
      return make_promised(shapes, costs, options, TopUp::last_call,
                           std::make_unique<LiveputPolicy>(shapes, costs, options));
    case PolicyName::deadline:
      return make_promised(shapes, costs, options, TopUp::behind, std::make_unique<Persist>(shapes, costs, options));
  }
  return nullptr;
}

}  // namespace mayfly
