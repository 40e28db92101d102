#include "simulate/replay.h"

#include <algorithm>
#include <limits>
#include <list>

#include "base/check.h"
#include "base/rng.h"

namespace mayfly {
namespace {

constexpr Seconds kNeverEnds{std::numeric_limits<double>::infinity()};

/// The machines, the clock and the training that the controller commands.
class World {
 public:
  World(const Series& series, Seconds duration, const Job& job, const ReplayOptions& options)
      : series_(series),
        duration_(duration),
        job_(job),
        options_(options),
        physics_(job.shapes, job.costs, job.global_batch, options.figures),
        rng_(options.seed),
        controller_(job.shapes, make_policy(options.policy, job.shapes, job.costs, policy_options()),
                    {.promise = options.promise, .most_machines = job.shapes.most_machines()}) {
    controller_.keep_journal(options.journal);
    price_ = job.spot;
  }

  Replay run() {
    if (options_.policy == PolicyName::on_demand) {
      for (int i = 0; i < most_machines(); ++i) join(Market::on_demand, job_.on_demand);
      changes_at_ = series_.changes.size();
    }
    while (!controller_.finished()) {
      const Seconds next = next_time();
      if (next >= duration_) break;
      advance(next);
      happen();
      note();
    }
    if (!controller_.finished()) advance(duration_);
    note();
    controller_.step(now_, Tick{});
    result_.samples = controller_.committed();
    result_.cost = controller_.spent();
    result_.time = now_;
    result_.finished = controller_.why_finished();
    result_.reached = result_.finished == Finish::Why::target;
    return std::move(result_);
  }

 private:
  PolicyOptions policy_options() const {
    // With a deadline machines on demand may fill up what the trace never had.
    const int most = options_.promise.deadline ? job_.shapes.most_machines() : most_machines();
    return {.interval = options_.interval, .lookahead = options_.lookahead, .most_machines = most};
  }
  int most_machines() const {
    int most = 0;
    for (const Change& change : series_.changes) most = std::max(most, change.available);
    return std::min(most, job_.shapes.most_machines());
  }
  int held() const { return static_cast<int>(spot_.size() + on_demand_.size()); }
  double speed() const { return shape_ ? physics_.speed(mechanism_, *shape_, held()) : 0; }

  Seconds next_time() const {
    Seconds next = wake_.value_or(kNeverEnds);
    if (changes_at_ < series_.changes.size()) next = std::min(next, series_.changes[changes_at_].time);
    if (prices_at_ < series_.prices.size() && !spot_.empty()) next = std::min(next, series_.prices[prices_at_].time);
    if (!orders_.empty()) next = std::min(next, orders_.front());
    if (options_.promise.samples && speed() > 0) {
      const double left = *options_.promise.samples - controller_.committed();
      next = std::min(next, std::max(now_, ready_) + Seconds(std::max(0.0, left) / speed()));
    }
    return std::max(now_, next);
  }

  /// Training up to `to` is arithmetic; its samples are reported as one commit.
  void advance(Seconds to) {
    const double span = (to - now_).count();
    const int busy = shape_ ? physics_.busy(mechanism_, *shape_, held()) : 0;
    const double shadowing = physics_.redundant_share(mechanism_);
    const double paused = shape_ ? std::clamp((ready_ - now_).count(), 0.0, span) : 0;
    const double trained = shape_ ? span - paused : 0;
    MachineTime& time = result_.machine_time;
    time.idle += (held() - busy) * span;
    time.reconfigure += busy * paused;
    time.useful += busy * trained * (1 - shadowing);
    time.redundant += busy * trained * shadowing;
    now_ = to;
    if (trained <= 0) return;
    mark(to - Seconds(trained));
    since_checkpoint_ += Seconds(trained);
    if (since_checkpoint_ >= options_.figures.checkpoint_every) {
      since_checkpoint_ = Seconds(std::fmod(since_checkpoint_.count(), options_.figures.checkpoint_every.count()));
    }
    double samples = speed() * trained;
    // The target is reached at a moment that was computed by a division.
    if (const auto& target = options_.promise.samples) {
      const double left = *target - controller_.committed();
      if (samples >= left * (1 - 1e-9)) samples = std::max(left, 0.0);
    }
    tell(StepCommitted{generation_, controller_.committed(), samples});
    mark(to);
    if (options_.milestones) result_.spendings.push_back({to, controller_.spent()});
  }

  void mark(Seconds time) {
    if (options_.milestones) result_.milestones.push_back({time, controller_.committed()});
  }

  /// Everything due now: losses before arrivals, and the controller's own time last, when all of it is known.
  void happen() {
    while (prices_at_ < series_.prices.size() && series_.prices[prices_at_].time <= now_) {
      price_ = series_.prices[prices_at_++].price;
      tell(Priced{job_.type, series_.zone, price_});
    }
    while (changes_at_ < series_.changes.size() && series_.changes[changes_at_].time <= now_)
      weather(series_.changes[changes_at_++]);
    while (!orders_.empty() && orders_.front() <= now_) {
      orders_.pop_front();
      join(Market::on_demand, job_.on_demand);
    }
    if (wake_ && *wake_ <= now_) {
      wake_.reset();
      tell(Tick{});
    }
  }

  void weather(const Change& change) {
    result_.preemptions += change.removed;
    for (int i = 0; i < change.removed && !spot_.empty(); ++i) {
      const auto victim = static_cast<std::size_t>(rng_.below(static_cast<int>(spot_.size())));
      const WorkerId worker = spot_[victim];
      spot_.erase(spot_.begin() + static_cast<std::ptrdiff_t>(victim));
      tell(Lost{worker});
    }
    for (int i = 0; i < change.added; ++i) join(Market::spot, price_);
  }

  void join(Market market, UsdPerHour price) {
    const WorkerId worker = ++last_worker_;
    (market == Market::spot ? spot_ : on_demand_).push_back(worker);
    ++added_;
    tell(Joined{worker, job_.type, series_.zone, market, price});
  }

  void tell(const Event& event) {
    Reaction reaction = controller_.step(now_, event);
    for (std::string& line : reaction.records) result_.journal.push_back(std::move(line));
    for (const Command& command : reaction.commands) std::visit([&](const auto& c) { obey(c); }, command);
  }

  void obey(const Assign& command) {
    const int to = *job_.shapes.find(command.shape);
    const Seconds pending = std::max(Seconds(0), ready_ - now_);
    const Outage outage = physics_.change(
        command, {.from = shape_, .added = added_, .pending = pending, .since_checkpoint = since_checkpoint_});
    lose(outage.work_lost);
    if (shape_ != to) ++result_.changes;
    if (command.lost > 0 && outage.work_lost.count() > 0) since_checkpoint_ = Seconds(0);
    shape_ = to;
    mechanism_ = command.mechanism;
    generation_ = command.generation;
    ready_ = now_ + outage.pause;
    added_ = 0;
    tell(Expected{ready_});
  }
  void obey(const Pause& command) {
    shape_.reset();
    generation_ = command.generation;
  }
  void obey(const Acquire& command) {
    for (int i = 0; i < command.count; ++i) orders_.push_back(now_ + options_.figures.on_demand_start);
  }
  void obey(const Release& command) {
    std::erase(spot_, command.worker);
    std::erase(on_demand_, command.worker);
  }
  void obey(const Wake& command) { wake_ = command.at; }
  void obey(const Finish&) { shape_.reset(); }
  void obey(const Drain&) {}
  void obey(const Checkpoint&) {}

  /// Takes back what was trained in the last stretch of work: from a checkpoint, or a step cut off.
  void lose(Seconds work) {
    if (work.count() <= 0 || !shape_) return;
    const double samples = std::min(speed() * work.count(), controller_.committed());
    const int busy = physics_.busy(mechanism_, *shape_, held());
    const double time = std::min(busy * work.count(), result_.machine_time.useful);
    result_.machine_time.useful -= time;
    result_.machine_time.lost += time;
    tell(CheckpointDone{controller_.committed() - samples});
    tell(RolledBack{controller_.generation()});
    mark(now_);
  }

  void note() {
    const Moment moment{now_, held(), shape_ ? job_.shapes[*shape_] : Shape{}};
    auto& moments = result_.moments;
    if (moments.empty() || moments.back().available != moment.available || moments.back().shape != moment.shape)
      moments.push_back(moment);
  }

  const Series& series_;
  Seconds duration_;
  const Job& job_;
  ReplayOptions options_;
  Physics physics_;
  Rng rng_;
  Controller controller_;
  Seconds now_{};
  std::size_t changes_at_ = 0;
  std::size_t prices_at_ = 0;
  UsdPerHour price_{};
  std::list<Seconds> orders_{};
  std::vector<WorkerId> spot_{};
  std::vector<WorkerId> on_demand_{};
  WorkerId last_worker_ = 0;
  int added_ = 0;  ///< since the last assignment
  std::optional<int> shape_{};
  Mechanism mechanism_ = Mechanism::migrate;  ///< of the assignment in force
  std::int64_t generation_ = 0;
  Seconds ready_{};
  Seconds since_checkpoint_{};
  std::optional<Seconds> wake_{};
  Replay result_{};
};

}  // namespace

Replay replay(const Series& series, Seconds duration, const Job& job, const ReplayOptions& options) {
  const Series held = capped(series, job.shapes.most_machines());
  return World(held, duration, job, options).run();
}

}  // namespace mayfly
