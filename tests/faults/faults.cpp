// The world of the fault test: ARCHITECTURE.md#fault-test
#include "faults/faults.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "base/rng.h"
#include "faults/fault_checks.h"

namespace mayfly {
namespace {

constexpr Seconds kStorm{900};
constexpr Seconds kCalm{420};
/// From a storm's end until everything it delayed has arrived.
constexpr Seconds kAftermath{200};
/// Messages of a storm that somebody repeats arrive within this time.
constexpr double kLongestDelay = 90;
constexpr std::size_t kMostUnanswered = 4;
/// Of the market, in each of which the weather is its own.
const std::vector<MachineKind> kSpot{
    {"p3.2xlarge", "a", Market::spot}, {"p3.2xlarge", "b", Market::spot}, {"g5.xlarge", "a", Market::spot}};

/// Tables of data parallelism, of pipelines, with gaps and an uneven shape, and with a single one; one shape in six is
/// slower than it should be, as measured tables have it.
Scenario drawn_scenario(Rng& rng, PolicyName policy) {
  static const std::vector<std::vector<Shape>> kTables{
      {{1, 1}, {2, 1}, {3, 1}, {4, 1}, {5, 1}, {6, 1}},
      {{1, 2}, {2, 2}, {3, 2}, {1, 3}, {2, 3}, {1, 4}, {2, 4}, {1, 6}},
      {{2, 2}, {2, 2, 1}, {3, 3}, {1, 5}},
      {{2, 2}},
  };
  Scenario scenario{.policy = policy,
                    .shapes = kTables[static_cast<std::size_t>(rng.below(static_cast<int>(kTables.size())))],
                    .change = Seconds(rng.below(3) * 20),
                    .ticks_written = true};
  ControllerOptions& options = scenario.options;
  for (const Shape& shape : scenario.shapes) {
    scenario.speeds.push_back(shape.machines() * (rng.chance(0.17) ? 2.5 : 9.5));
    options.most_machines = std::max(options.most_machines, shape.machines());
  }
  if (rng.chance(0.5)) options.settle = Seconds(rng.below(10));
  if (rng.chance(0.4)) options.promise.samples = 100.0 * (1 + rng.below(300));
  if (rng.chance(0.6)) options.promise.deadline = Seconds(600 + rng.below(3000));
  if (rng.chance(0.3)) options.promise.budget = Usd{0.05 * (1 + rng.below(60))};
  for (const Offer& offer : {Offer{.type = "p3.2xlarge", .zone = "a", .rate = {3.06}, .limit = 2},
                             Offer{.type = "p3.2xlarge", .zone = "b", .rate = {3.4}, .limit = 6},
                             Offer{.type = "g5.xlarge", .zone = "a", .rate = {1}, .limit = 1}}) {
    if (rng.chance(0.5)) scenario.offers.push_back(offer);
  }
  // A deadline policy with nothing to hold is another persist.
  if (policy == PolicyName::deadline && !options.promise.samples) options.promise.samples = 20'000;
  options.save_at_target = options.promise.samples && rng.chance(0.5);
  return scenario;
}

class FaultWorld {
 public:
  FaultWorld(std::uint64_t seed, PolicyName policy)
      : rng_(seed),
        scenario_(drawn_scenario(rng_, policy)),
        shapes_(scenario_.shapes, scenario_.speeds),
        costs_(MigrationCosts::constant(shapes_, scenario_.change)),
        controller_(make_controller(scenario_, shapes_, costs_)),
        checks_(shapes_, scenario_.options, scenario_.offers),
        least_(least_machines(policy)) {}

  FaultRun run() {
    for (int round = 0; round < 2; ++round) {
      storm_ = true;
      const Seconds calm = now_ + kStorm;
      for (int i = rng_.below(scenario_.options.most_machines + 2); i > 0; --i) machine_comes(some_kind());
      weather(calm);
      run_until(calm);
      storm_ = false;
      run_until(calm + kAftermath);
      // Rented ones may be given back: a policy that is ahead of the clock waits for the market.
      for (int there = checks_.usable(Market::spot); there < least_; ++there) machine_comes(some_kind());
      const int commits = checks_.commits();
      run_until(calm + kCalm);
      if (!broken() && !checks_.finished() && checks_.commits() == commits)
        broken_ = fmt::format("{} machines for {} s, and no step was accepted", checks_.usable(Market::spot),
                              (kCalm - kAftermath).count());
    }
    return {.broken = broken_.empty() ? checks_.broken() : broken_,
            .scenario = std::move(scenario_),
            .commits = checks_.commits(),
            .rollbacks = checks_.rollbacks(),
            .assigned = assigned_,
            .finished = checks_.finished(),
            .saved = checks_.saved_target()};
  }

 private:
  struct Machine {
    Market market = Market::spot;
    bool alive = true;
  };
  /// The workers of one generation, who train together while all of them live.
  struct Crew {
    std::int64_t generation = 0;
    std::vector<WorkerId> members{};
    double next = 0;
    int state = 0;  ///< the last step trained
    double batch = 1;
    Seconds step{1};
    std::vector<TrainedStep> unanswered{};
    bool stands = false;  ///< holds its state
  };

  int least_machines(PolicyName policy) const {
    if (policy != PolicyName::redundant) return shapes_.least_machines();
    int least = shapes_.most_machines();
    for (const Shape& shape : shapes_.all()) {
      if (shape.stages == redundant_depth(shapes_) && shape.extra == 0) least = std::min(least, shape.machines());
    }
    return least;
  }
  bool broken() const { return !broken_.empty() || !checks_.broken().empty(); }

  // Time: what happens is ordered by (time, number).

  void at(Seconds time, std::function<void()> what) {
    happenings_.emplace(std::pair(std::max(now_, time), ++happened_), std::move(what));
  }
  void run_until(Seconds end) {
    while (!broken() && !happenings_.empty() && happenings_.begin()->first.first <= end) {
      auto next = happenings_.extract(happenings_.begin());
      now_ = next.key().first;
      next.mapped()();
    }
    now_ = end;
  }

  // Messages.

  Seconds delay() {
    if (!storm_ || rng_.chance(0.4)) return Seconds(0.01 * rng_.uniform());
    return Seconds(std::min(kLongestDelay, rng_.exponential(rng_.chance(0.5) ? 0.5 : 20)));
  }
  /// Arrives at least once.
  void send(const Event& event, const std::optional<TrainedStep>& step = {}) {
    at(now_ + delay(), [=, this] { tell(event, step); });
    if (storm_ && rng_.chance(0.2)) at(now_ + delay(), [=, this] { tell(event, step); });
  }
  /// May never arrive.
  void send_once(const Event& event) {
    if (!storm_ || !rng_.chance(0.15)) send(event);
  }
  void tell(const Event& event, const std::optional<TrainedStep>& step) {
    if (broken()) return;
    scenario_.events.push_back({now_, event});
    checks_.before(now_, event);
    const Reaction reaction = controller_.step(now_, event);
    checks_.after(now_, event, step, reaction, controller_);
    for (const Command& command : reaction.commands) std::visit([&](const auto& c) { obey(c); }, command);
  }

  // Weather.

  void weather(Seconds end) {
    for (Seconds time = now_; time < end; time += Seconds(rng_.exponential(25))) {
      at(time, [this] {
        const int draw = rng_.below(10);
        if (draw < 3) machine_comes(some_kind());
        if (draw >= 3 && draw < 6) machine_dies(some_machine(Market::spot));
        if (draw >= 6 && draw < 8) notice(some_machine(Market::spot));
        if (draw == 8) price_changes();
        if (draw == 8 && rng_.chance(0.2))
          send_once(Charged{.type = "p3.2xlarge", .zone = "a", .cost = {0.01 * rng_.uniform()}});
        if (draw == 9) mishap();
      });
    }
  }
  void mishap() {
    switch (rng_.below(7)) {
      case 0:
        for (auto& [id, machine] : machines_) machine_dies(id);
        break;
      case 1:
        machine_dies(some_machine(Market::on_demand));
        break;
      case 2:
        machines_[++last_worker_] = {.alive = false};  // died before it could say that it was there, or after
        send(Lost{last_worker_});
        if (rng_.chance(0.5)) send(joined(last_worker_, some_kind()));
        break;
      case 3:
        if (scenario_.options.promise.samples) send_once(Estimated{checks_.end() * (0.5 + 2 * rng_.uniform())});
        break;
      case 4:
        send_once(Measured{rng_.chance(0.1) ? 0 : 0.3 + rng_.uniform()});
        break;
      case 5:
        holders_.clear();
        send(StateLost{crew_.generation});
        break;
      default:
        tell(Tick{}, {});
    }
  }
  std::optional<WorkerId> some_machine(Market market) {
    std::vector<WorkerId> alive;
    for (const auto& [id, machine] : machines_) {
      if (machine.alive && machine.market == market) alive.push_back(id);
    }
    if (alive.empty()) return std::nullopt;
    return alive[static_cast<std::size_t>(rng_.below(static_cast<int>(alive.size())))];
  }
  const MachineKind& some_kind() { return kSpot[static_cast<std::size_t>(rng_.below(static_cast<int>(kSpot.size())))]; }
  void price_changes() {
    if (scenario_.offers.empty() || rng_.chance(0.7)) {
      const MachineKind& kind = some_kind();
      return send_once(Priced{kind.type, kind.zone, {0.2 + rng_.uniform()}});
    }
    const Offer& offer =
        scenario_.offers[static_cast<std::size_t>(rng_.below(static_cast<int>(scenario_.offers.size())))];
    send_once(Priced{offer.type, offer.zone, {1 + 3 * rng_.uniform()}, Market::on_demand});
  }
  Joined joined(WorkerId worker, const MachineKind& kind) {
    const double price = kind.market == Market::spot ? 0.2 + rng_.uniform() : 3.06;
    Joined event{.worker = worker, .type = kind.type, .zone = kind.zone, .market = kind.market, .price = {price}};
    if (rng_.chance(0.5)) event.since = now_ - Seconds(rng_.below(60));
    return event;
  }
  void machine_comes(const MachineKind& kind) {
    machines_[++last_worker_] = {.market = kind.market};
    send(joined(last_worker_, kind));
  }
  void machine_dies(std::optional<WorkerId> worker) {
    if (!worker || !machines_.at(*worker).alive) return;
    machines_.at(*worker).alive = false;
    send(Lost{*worker});
    if (rng_.chance(0.2)) send(Notice{*worker, Seconds(30)});
  }
  void notice(std::optional<WorkerId> worker) {
    if (!worker) return;
    const Seconds left(rng_.below(120));
    send_once(Notice{*worker, left});
    if (rng_.chance(0.7)) at(now_ + left, [this, worker] { machine_dies(worker); });
  }

  // Commands. Those to workers take their way too, so an old generation trains on for a while.

  void obey(const Acquire& command) {
    for (int i = 0; i < command.count; ++i) {
      if (!storm_ || !rng_.chance(0.25))
        at(now_ + Seconds(storm_ ? rng_.exponential(200) : 30),
           [this, kind = delivered(command.kind)] { machine_comes(kind); });
    }
  }
  /// As a rule what was ordered; now and then in another zone, or of another type that somebody found cheaper.
  MachineKind delivered(MachineKind kind) {
    if (kind.type.empty()) kind = {"p3.2xlarge", "a", kind.market};
    if (rng_.chance(0.1)) kind.zone = "c";
    if (rng_.chance(0.1)) kind.type = "g4dn.xlarge";
    return kind;
  }
  void obey(const Release& command) {
    const auto found = machines_.find(command.worker);
    if (found != machines_.end()) found->second.alive = false;
  }
  void obey(const Assign& command) {
    ++assigned_;
    send(Expected{now_ + Seconds(rng_.below(60))});
    at(now_ + delay(), [this, command] { begin(command); });
  }
  void obey(const Pause& command) {
    at(now_ + delay(), [this, command] {
      if (command.generation > crew_.generation) crew_ = {.generation = command.generation};
    });
  }
  void obey(const Drain&) {}
  void obey(const Checkpoint&) {
    const auto generation = checks_.generation();
    at(now_ + delay(), [this, generation] { save(generation); });
  }
  void obey(const Finish&) {}
  void obey(const Warn&) {}
  void obey(const Wake& command) {
    const int wake = ++wake_;
    // A timer may fire late or a hair early; one that was replaced may fire all the same.
    Seconds due = command.at;
    if (storm_ && rng_.chance(0.1)) due += Seconds(rng_.exponential(5));
    if (storm_ && rng_.chance(0.05)) due -= Seconds(1e-7);
    const bool replaced_too = storm_ && rng_.chance(0.2);
    const bool doubled = storm_ && rng_.chance(0.1);
    at(due, [=, this] {
      if (wake != wake_ && !replaced_too) return;
      tell(Tick{}, {});
      if (doubled) at(now_ + delay(), [this] { tell(Tick{}, {}); });
    });
  }

  // Training.

  void begin(const Assign& command) {
    if (command.generation <= crew_.generation) return;
    crew_ = {.generation = command.generation,
             .members = command.members,
             .next = command.next_sample,
             .state = checks_.state(),
             .batch = (1 + rng_.below(32)) * (rng_.chance(0.1) ? 1e6 : 1.0),
             .step = Seconds(1 + 6 * rng_.uniform())};
    if (command.generation != checks_.generation()) return;  // overtaken while on its way
    const bool kept = std::any_of(holders_.begin(), holders_.end(), [&](WorkerId w) { return machines_.at(w).alive; });
    if (command.next_sample > 0 && (!kept || rng_.chance(0.1))) {
      holders_.clear();
      const RolledBack event{command.generation};
      at(now_ + delay(), [this, event] { roll_back(event); });
      if (storm_ && rng_.chance(0.3)) at(now_ + delay() + Seconds(5), [this, event] { tell(event, {}); });
      return;
    }
    train(command.generation);
  }
  /// The crew starts when the controller has heard of it, at the checkpoint that the controller knows.
  void roll_back(const RolledBack& event) {
    tell(event, {});
    if (event.generation != crew_.generation || event.generation != checks_.generation()) return;
    crew_.next = checks_.end();
    crew_.state = checks_.state();
    train(event.generation);
  }
  /// Writing takes a while, in which the writers may die.
  void save(std::int64_t generation) {
    if (generation < crew_.generation || checks_.finished()) return;
    if (generation == crew_.generation && crew_.stands) {
      const double sample = checks_.end();
      at(now_ + Seconds(rng_.below(20)), [=, this] {
        if (works(generation)) send(CheckpointDone{sample});
      });
      return;
    }
    at(now_ + Seconds(5), [this, generation] { save(generation); });  // the assignment, or its state, is on its way
  }
  void train(std::int64_t generation) {
    crew_.stands = true;
    holders_.insert(crew_.members.begin(), crew_.members.end());
    at(now_ + crew_.step, [this, generation] { end_step(generation); });
    at(now_ + Seconds(15), [this, generation] { repeat(generation); });
  }
  bool works(std::int64_t generation) const {
    return crew_.generation == generation &&
           std::all_of(crew_.members.begin(), crew_.members.end(), [&](WorkerId w) { return machines_.at(w).alive; });
  }
  void end_step(std::int64_t generation) {
    if (!works(generation)) return;
    answered();
    if (crew_.unanswered.size() < kMostUnanswered) {
      const TrainedStep step{++last_step_, crew_.state, crew_.next, crew_.next + crew_.batch};
      crew_.state = step.id;
      crew_.next = step.end;
      crew_.unanswered.push_back(step);
      report(generation, step);
      if (rng_.chance(0.15)) send_once(CheckpointDone{step.end});
    }
    at(now_ + crew_.step, [this, generation] { end_step(generation); });
  }
  void report(std::int64_t generation, const TrainedStep& step) {
    const StepCommitted event{generation, step.first, step.end - step.first};
    if (!storm_ || !rng_.chance(0.1)) send(event, step);
  }
  void answered() {
    std::erase_if(crew_.unanswered, [&](const TrainedStep& step) { return step.end <= checks_.end(); });
  }
  /// What was not accepted is reported again until it is, or until the generation is over.
  void repeat(std::int64_t generation) {
    if (!works(generation)) return;
    answered();
    for (const TrainedStep& step : crew_.unanswered) report(generation, step);
    at(now_ + Seconds(15), [this, generation] { repeat(generation); });
  }

  Rng rng_;
  Scenario scenario_;
  Shapes shapes_;
  MigrationCosts costs_;
  Controller controller_;
  FaultChecks checks_;
  int least_;
  Seconds now_{};
  bool storm_ = true;
  std::map<std::pair<Seconds, int>, std::function<void()>> happenings_{};
  int happened_ = 0;
  std::map<WorkerId, Machine> machines_{};
  WorkerId last_worker_ = 0;
  int wake_ = 0;
  Crew crew_{};
  std::set<WorkerId> holders_{};  ///< who have had the state in hand
  int last_step_ = 0;
  int assigned_ = 0;
  std::string broken_{};
};

}  // namespace

FaultRun fault_run(std::uint64_t seed, PolicyName policy) { return FaultWorld(seed, policy).run(); }

std::string fault_report(const FaultRun& run) {
  return fmt::format("# {}\n{}----\n{}", run.broken.empty() ? "every promise kept" : run.broken,
                     scenario_text(run.scenario), transcript(run.scenario));
}

}  // namespace mayfly
