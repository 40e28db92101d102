#include "simulate/replay.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <map>

#include "base/check.h"
#include "base/rng.h"

namespace mayfly {
namespace {

constexpr Seconds kNeverEnds{std::numeric_limits<double>::infinity()};

/// Where the market is.
MachineKind on_demand_kind(const Scene& scene, const Job& job) {
  return {job.type, scene.supplies.size() == 1 ? scene.supplies[0].lines[0].kind.zone : "", Market::on_demand};
}

/// The machines of one supply, as a replay goes on.
struct Spring {
  explicit Spring(const Supply& supply, std::size_t first) : first_line(first), held(supply.lines.size()) {
    for (const Supply::Line& line : supply.lines) {
      prices.push_back(line.price);
      prices_at.push_back(0);
    }
  }

  std::size_t first_line;  ///< of the scene
  std::size_t changes_at = 0;
  std::vector<UsdPerHour> prices{};      ///< by line, now
  std::vector<std::size_t> prices_at{};  ///< by line: the next
  std::vector<int> held;                 ///< by line
  std::vector<WorkerId> machines{};
  int offered = 0;  ///< by the market, those held included
  double due = 0;   ///< losses that are ours by share, not yet suffered
};

/// A machine that is held.
struct Place {
  std::size_t line = 0;    ///< of the scene; beyond its lines: ordered on the way
  Spring* from = nullptr;  ///< nothing: on demand
};

/// The machines, the clock and the training that the controller commands.
class World {
 public:
  World(const Scene& scene, const Job& job, const ReplayOptions& options)
      : scene_(scene),
        job_(job),
        options_(options),
        physics_(job.shapes, job.costs, job.global_batch, options.figures),
        rng_(options.seed),
        controller_(
            job.shapes, make_policy(options.policy, job.shapes, job.costs, policy_options()),
            {.promise = options.promise, .most_machines = job.shapes.most_machines(), .standing = scene.standing}) {
    controller_.keep_journal(options.journal);
    for (const Supply& supply : scene.supplies) {
      springs_.emplace_back(supply, lines_);
      lines_ += supply.lines.size();
    }
  }

  Replay run() {
    for (const Rented& rented : scene_.rented) {
      for (int i = 0; i < rented.count; ++i) join(rented.kind, rented.price, {.line = lines_});
      ++lines_;
    }
    // A promise is looked at from the beginning, whether there are machines or not.
    if (options_.promise.samples && options_.promise.deadline) wake_ = Seconds(0);
    while (!controller_.finished()) {
      const Seconds next = next_time();
      if (next >= scene_.duration) break;
      advance(next);
      happen();
      note();
    }
    if (!controller_.finished()) advance(scene_.duration);
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
    // With a deadline machines on demand may fill up what the market never had.
    int most = options_.promise.deadline ? job_.shapes.most_machines() : peak(scene_);
    if (options_.all_may_come) most = std::max(most, scene_.most);
    for (const Rented& rented : scene_.rented) most += rented.count;
    PolicyOptions options{.interval = options_.interval,
                          .lookahead = options_.lookahead,
                          .most_machines = std::min(most, job_.shapes.most_machines())};
    const MachineKind kind = on_demand_kind(scene_, job_);
    options.offers = {{.type = kind.type,
                       .market = kind.market,
                       .zone = kind.zone,
                       .rate = job_.on_demand.value_or(UsdPerHour{}),
                       .limit = job_.on_demand ? job_.shapes.most_machines() : 0}};
    return options;
  }
  int held() const { return static_cast<int>(places_.size()); }
  int of_market() const {
    int sum = 0;
    for (const Spring& spring : springs_) sum += static_cast<int>(spring.machines.size());
    return sum;
  }
  double speed() const {
    if (!shape_) return 0;
    return scene_.pace ? pace_ : physics_.speed(mechanism_, *shape_, held());
  }

  Seconds next_time() const {
    Seconds next = wake_.value_or(kNeverEnds);
    for (std::size_t s = 0; s < springs_.size(); ++s) {
      const Spring& spring = springs_[s];
      const Supply& supply = scene_.supplies[s];
      if (spring.changes_at < supply.changes.size()) next = std::min(next, supply.changes[spring.changes_at].time);
      for (std::size_t l = 0; l < supply.lines.size() && !spring.machines.empty(); ++l) {
        const auto& prices = supply.lines[l].prices;
        if (spring.prices_at[l] < prices.size()) next = std::min(next, prices[spring.prices_at[l]].time);
      }
    }
    if (!orders_.empty()) next = std::min(next, orders_.front().first);
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
    if (trained <= 0) return mark_money();
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
    mark_money();
  }

  void mark_money() {
    if (options_.milestones) result_.spendings.push_back({now_, controller_.spent_by(now_)});
  }

  void mark(Seconds time) {
    if (options_.milestones) result_.milestones.push_back({time, controller_.committed()});
  }

  /// Everything due now: losses before arrivals, and the controller's own time last, when all of it is known.
  void happen() {
    for (std::size_t s = 0; s < springs_.size(); ++s) change_prices(springs_[s], scene_.supplies[s]);
    for (std::size_t s = 0; s < springs_.size(); ++s) {
      const auto& changes = scene_.supplies[s].changes;
      Spring& spring = springs_[s];
      while (spring.changes_at < changes.size() && changes[spring.changes_at].time <= now_)
        weather(spring, changes[spring.changes_at++]);
    }
    take_what_is_offered();
    while (!orders_.empty() && orders_.front().first <= now_) {
      const MachineKind kind = orders_.front().second;
      orders_.pop_front();
      join(kind, *job_.on_demand, {.line = lines_});
    }
    if (wake_ && *wake_ <= now_) {
      wake_.reset();
      tell(Tick{});
    }
  }

  void change_prices(Spring& spring, const Supply& supply) {
    for (std::size_t l = 0; l < supply.lines.size(); ++l) {
      const Supply::Line& line = supply.lines[l];
      for (std::size_t& at = spring.prices_at[l]; at < line.prices.size() && line.prices[at].time <= now_; ++at) {
        spring.prices[l] = line.prices[at].price;
        tell(Priced{line.kind.type, line.kind.zone, spring.prices[l]});
      }
    }
  }

  void weather(Spring& spring, const Change& change) {
    // Of machines that are all alike, those held suffer their share.
    const auto have = static_cast<double>(spring.machines.size());
    if (spring.offered > 0) spring.due += have / spring.offered * std::min(change.removed, spring.offered);
    const int hit = std::min(static_cast<int>(have), static_cast<int>(std::floor(spring.due + 1e-9)));
    spring.due -= hit;
    result_.preemptions += hit;
    for (int i = 0; i < hit; ++i) {
      const auto victim = static_cast<std::size_t>(rng_.below(static_cast<int>(spring.machines.size())));
      const WorkerId worker = spring.machines[victim];
      forget(worker);
      tell(Lost{worker});
    }
    spring.offered = std::max(static_cast<int>(spring.machines.size()), spring.offered + change.added - change.removed);
  }

  /// The cheapest first, as long as there is room.
  void take_what_is_offered() {
    for (int room = scene_.most - of_market(); room > 0; --room) {
      Spring* cheapest = nullptr;
      std::size_t line = 0;
      for (std::size_t s = 0; s < springs_.size(); ++s) {
        Spring& spring = springs_[s];
        const auto& lines = scene_.supplies[s].lines;
        if (static_cast<int>(spring.machines.size()) >= spring.offered) continue;
        std::size_t free = 0;
        while (free < lines.size() && spring.held[free] >= lines[free].most) ++free;
        if (free == lines.size()) continue;
        if (cheapest != nullptr && spring.prices[free] >= cheapest->prices[line]) continue;
        cheapest = &spring;
        line = free;
      }
      if (cheapest == nullptr) return;
      const std::size_t s = static_cast<std::size_t>(cheapest - springs_.data());
      join(scene_.supplies[s].lines[line].kind, cheapest->prices[line],
           {.line = cheapest->first_line + line, .from = cheapest});
    }
  }

  void join(const MachineKind& kind, UsdPerHour price, const Place& place) {
    const WorkerId worker = ++last_worker_;
    places_[worker] = place;
    if (place.from != nullptr) {
      place.from->machines.push_back(worker);
      ++place.from->held[place.line - place.from->first_line];
    }
    ++added_;
    tell(Joined{worker, kind.type, kind.zone, kind.market, price});
  }

  void forget(WorkerId worker) {
    const auto found = places_.find(worker);
    if (found == places_.end()) return;
    if (Spring* from = found->second.from) {
      std::erase(from->machines, worker);
      --from->held[found->second.line - from->first_line];
    }
    places_.erase(found);
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
    if (scene_.pace) pace_ = scene_.pace(lines_of(command.members));
    shape_ = to;
    mechanism_ = command.mechanism;
    generation_ = command.generation;
    ready_ = now_ + outage.pause;
    added_ = 0;
    tell(Expected{ready_});
  }
  std::vector<int> lines_of(const std::vector<WorkerId>& members) const {
    std::vector<int> counts(lines_);
    for (const WorkerId member : members) ++counts[places_.at(member).line];
    return counts;
  }
  void obey(const Pause& command) {
    shape_.reset();
    generation_ = command.generation;
  }
  void obey(const Acquire& command) {
    MAYFLY_CHECK(job_.on_demand, "what is ordered on demand has a price");
    for (int i = 0; i < command.count; ++i) orders_.emplace_back(now_ + options_.figures.on_demand_start, command.kind);
  }
  void obey(const Release& command) {
    const auto found = places_.find(command.worker);
    if (found == places_.end()) return;
    if (found->second.from != nullptr) --found->second.from->offered;
    forget(command.worker);
  }
  void obey(const Wake& command) { wake_ = command.at; }
  void obey(const Finish&) { shape_.reset(); }
  void obey(const Warn&) {}
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

  const Scene& scene_;
  const Job& job_;
  ReplayOptions options_;
  Physics physics_;
  Rng rng_;
  Controller controller_;
  Seconds now_{};
  std::vector<Spring> springs_{};  ///< of the scene's supplies; does not grow
  std::size_t lines_ = 0;          ///< of supplies and rented machines
  std::deque<std::pair<Seconds, MachineKind>> orders_{};
  std::map<WorkerId, Place> places_{};
  WorkerId last_worker_ = 0;
  int added_ = 0;  ///< since the last assignment
  std::optional<int> shape_{};
  Mechanism mechanism_ = Mechanism::migrate;  ///< of the assignment in force
  double pace_ = 0;                           ///< likewise, where the scene has one
  std::int64_t generation_ = 0;
  Seconds ready_{};
  Seconds since_checkpoint_{};
  std::optional<Seconds> wake_{};
  Replay result_{};
};

}  // namespace

Replay replay(const Scene& scene, const Job& job, const ReplayOptions& options) {
  if (options.policy != PolicyName::on_demand) return World(scene, job, options).run();
  MAYFLY_CHECK(job.on_demand, "a job that is rented on demand has a price on demand");
  Scene rented{.standing = scene.standing, .duration = scene.duration};
  rented.rented = {{.kind = on_demand_kind(scene, job), .price = *job.on_demand, .count = peak(scene)}};
  return World(rented, job, options).run();
}

Replay replay(const Series& series, Seconds duration, const Job& job, const ReplayOptions& options) {
  return replay(scene_of(series, duration, job), job, options);
}

}  // namespace mayfly
