#include "storm/world.h"

#include <algorithm>

#include "storm/puppet.h"

namespace mayfly::storm {
namespace {

constexpr Seconds kStorm{40};
/// From SIGTERM to SIGKILL.
constexpr Seconds kWindow{30};
/// Everything that a storm has broken is mended by then, and the rest is trained.
constexpr Seconds kCalm{900};
/// What the storm has broken is known by then.
constexpr Seconds kSettled{45};
/// All machines are there again.
constexpr Seconds kComplete{100};

}  // namespace

World::World(std::uint64_t seed, bool record)
    : record_(record),
      rng_(seed),
      inventory_(account_, inputs_),
      job_(unmeasured_job(5)),
      engine_(
          agenda_, rng_,
          {.boot =
               [this](int launch, const MachineRole& role) {
                 puppets_.push_back(std::make_unique<Puppet>(*this, launch, role.server, fmt::format("at-{}", launch)));
                 puppets_.back()->boot();
               },
           .notify =
               [this](int launch) {
                 for (const auto& puppet : puppets_) {
                   if (puppet->launch() == launch) puppet->notice(Seconds(5));
                 }
               },
           .kill =
               [this](int launch) {
                 for (const auto& puppet : puppets_) {
                   if (puppet->launch() == launch) puppet->die();
                 }
               }}) {
  draw_job();
  draw_weather();
  draw_promise();
}

World::~World() = default;

void World::draw_job() {
  TrainSpec& train = inputs_.spec.train.emplace();
  train.batch = 8;
  const int kind = rng_.below(4);
  using Sync = ServersSpec::Sync;
  if (kind > 0)
    train.servers = ServersSpec{.count = 1 + rng_.below(2),
                                .standby = rng_.below(2),
                                .sync = kind == 1   ? Sync::bsp
                                        : kind == 2 ? Sync::asp
                                                    : Sync::ssp,
                                .bound = rng_.below(3)};
  if (rng_.chance(0.7)) train.checkpoint.every = Seconds(1 + rng_.below(8));
  inputs_.spec.name = "storm";
  const int steps = 8 + rng_.below(40);
  target_ = static_cast<std::int64_t>(steps) * train.batch;
  inputs_.spec.steps = steps;
  inputs_.workers = 1 + rng_.below(4);
  inputs_.roles.assign(static_cast<std::size_t>(inputs_.workers), MachineRole{.type = "spot", .price = {1}});
  if (rng_.chance(0.1)) inputs_.roles[0].limits.lifetime = Seconds(20);
  if (train.servers) inputs_.servers = {.type = "server", .count = train.servers->count * (1 + train.servers->standby)};
  inputs_.priced = rng_.chance(0.5);
  inputs_.job = &job_;
  inputs_.policy = rng_.chance(0.5) ? PolicyName::liveput : PolicyName::persist;
  inputs_.times = {.heartbeat = Seconds(2), .silence = Seconds(6), .orphan = Seconds(60), .replacement = Seconds(1)};
  inputs_.directory = "run";
  inputs_.job_file = "/job.yaml";
  if (rng_.chance(0.15)) signal_ = kStorm * rng_.uniform();
  if (!rng_.chance(0.1) || inputs_.roles[0].limits.lifetime) return;
  // Long enough to live through the storm and what follows.
  const bool apart = kind > 1;
  work_ = Seconds(180.0 / steps * (apart ? inputs_.workers : 1));
  if (rng_.chance(0.3)) signal_ = kStorm + Seconds(20 + 20 * rng_.uniform());
}

void World::draw_weather() {
  const auto some = [&](double chance, double most) { return rng_.chance(chance) ? most * rng_.uniform() : 0; };
  const auto every = [&](double chance, double mean) {
    return Seconds(rng_.chance(chance) ? mean * (0.3 + rng_.uniform()) : 0);
  };
  storm_ = {.delay = Seconds(rng_.chance(0.5) ? 0.002 : 0.05),
            .late = some(0.5, 0.01),
            .twice = some(0.3, 0.1),
            .swapped = some(0.3, 0.05),
            .between_cuts = every(0.5, 5),
            .between_deaths = every(0.6, 8),
            .between_notices = every(0.5, 10),
            .between_freezes = every(0.3, 15),
            .between_crashes = every(0.5, 12),
            .crash_in_act = some(0.3, 0.01),
            .no_checkpoint = some(0.3, 0.5),
            .mute = some(0.2, 0.2),
            .hang = some(0.2, 0.03),
            .between_partings = every(0.3, 10)};
  // Otherwise a step would have to be long before it is too long.
  const Seconds most = Seconds(8) + 3 * work_.value_or(Seconds(0));
  if (storm_.hang > 0) inputs_.times.step = {.first = 2 * most, .floor = most, .times = 4};
  engine_storm_ = {.refuse = some(0.4, 0.5),
                   .forget = some(0.3, 0.3),
                   .twice = some(0.4, 0.4),
                   .untold = some(0.3, 0.2),
                   .delay = Seconds(rng_.chance(0.5) ? 0.1 : 2),
                   .unlisted = Seconds(rng_.chance(0.3) ? 10 : 0)};
}

/// A deadline that is easy, tight or out of reach, reckoned with a sample a second and machine: machines are given back
/// for rented ones, which the engine refuses or this run has no room for.
void World::draw_promise() {
  if (!rng_.chance(0.3)) return;
  inputs_.profile = &profile_;
  inputs_.policy = rng_.chance(0.5) ? PolicyName::liveput : PolicyName::deadline;
  inputs_.spec.deadline = Seconds(static_cast<double>(target_) / inputs_.workers * (0.2 + 1.3 * rng_.uniform()));
  if (rng_.chance(0.5)) inputs_.job = &narrow_.emplace(unmeasured_job(inputs_.workers));
}

Seconds World::work() { return work_ ? *work_ * (0.5 + rng_.uniform()) : Seconds(0.02 + rng_.exponential(0.05)); }

// Weather.

void World::repeat(Seconds mean, Seconds end, void (World::*what)()) {
  if (mean.count() <= 0) return;
  for (Seconds time(rng_.exponential(mean.count())); time < end; time += Seconds(rng_.exponential(mean.count())))
    agenda_.at(time, [this, what] { (this->*what)(); });
}

void World::schedule_storm(Seconds end) {
  repeat(weather_.between_cuts, end, &World::cut_one);
  repeat(weather_.between_deaths, end, &World::kill_one);
  repeat(weather_.between_notices, end, &World::notify_one);
  repeat(weather_.between_freezes, end, &World::freeze_one);
  repeat(weather_.between_crashes, end, &World::crash);
  repeat(weather_.between_partings, end, &World::part_two);
}

Puppet* World::some_puppet() {
  std::vector<Puppet*> alive;
  for (const auto& puppet : puppets_) {
    if (puppet->alive()) alive.push_back(puppet.get());
  }
  return alive.empty() ? nullptr : alive[static_cast<std::size_t>(rng_.below(static_cast<int>(alive.size())))];
}

void World::kill_one() {
  // Often many at once.
  for (int count = rng_.chance(0.2) ? 4 : 1; count > 0; --count) {
    if (Puppet* victim = some_puppet()) victim->die();
  }
}

void World::part_two() {
  const Puppet* const one = some_puppet();
  const Puppet* const other = some_puppet();
  if (one == nullptr || one == other || (one->server() && other->server())) return;
  const Seconds end = rng_.chance(0.2) ? kStorm + kCalm : agenda_.now() + Seconds(rng_.exponential(10));
  parted_[std::minmax(one->launch(), other->launch())] = end;
}

void World::notify_one() {
  Puppet* victim = some_puppet();
  if (victim == nullptr) return;
  const Seconds left(rng_.chance(0.5) ? 5 : 0.5);
  victim->notice(left);
  if (!rng_.chance(0.1)) agenda_.after(left, [victim] { victim->die(); });
}

/// One of several workers that hold the state goes just when all are told.
void World::kill_amid_stop() {
  std::vector<Puppet*> workers;
  for (const auto& puppet : puppets_) {
    if (puppet->alive() && puppet->attached() && !puppet->server()) workers.push_back(puppet.get());
  }
  if (inputs_.spec.train->servers || !parted_.empty() || workers.size() < 2 || agenda_.now() < kStorm ||
      rng_.chance(0.5))
    return;
  Puppet* const victim = workers[static_cast<std::size_t>(rng_.below(static_cast<int>(workers.size())))];
  agenda_.after(Seconds(0.02 * rng_.uniform()), [victim] { victim->die(); });
}

/// As a scheduler does: without patience, and often to everybody, who is killed when its time is over.
void World::shut_down() {
  kill_amid_stop();
  for (const Seconds later : {Seconds(0), Seconds(0.003), Seconds(1.5), Seconds(4)}) {
    agenda_.after(later, [this] {
      if (session_ && !over_) inventory_.signalled(session_time());
      tell([] { return "signal terminate"; },
           [](Session& session, Seconds now) { session.signal(now, Session::Signal::terminate); });
    });
  }
  if (rng_.chance(0.5)) return;
  for (const auto& puppet : puppets_) {
    agenda_.after(Seconds(0.02 * rng_.uniform()), [it = puppet.get()] { it->notice(kWindow); });
    agenda_.after(kWindow, [it = puppet.get()] { it->die(); });
  }
}

void World::freeze_one() {
  // Some never come back.
  if (Puppet* victim = some_puppet()) victim->freeze(rng_.chance(0.1) ? 10 * kCalm : Seconds(rng_.exponential(6)));
}

void World::cut_one() {
  const Puppet* victim = some_puppet();
  if (victim != nullptr && victim->connection()) close(*victim->connection());
}

void World::exited(Puppet& puppet, const char* how) {
  if (puppet.connection()) close(*puppet.connection());
  engine_.ended(puppet.launch(), {.how = how});
}

// The end.

void World::check_end() {
  for (const int launch : engine_.ordered_twice()) account_.require(false, "launch {} was ordered twice", launch);
  if (!over_) {
    return account_.require(false, "{} of {} samples after the storm and {} s of calm", account_.end(), target_,
                            kCalm.count());
  }
  const auto& failure = session_->failure();
  // A last checkpoint that cannot be written is nobody's fault.
  const bool excused = signal_ && *signal_ < kStorm && failure && failure->starts_with("stopped, but");
  // Whoever hangs has failed, and three at one place are no accident.
  const bool hung = storm_.hang > 0 && failure && failure->find("does not get on") != failure->npos;
  account_.require(!failure || excused || hung, "the run has failed: {}", failure.value_or(""));
  if (failure) return;
  const Saved* saved = newest();
  FoundCheckpoint found;
  if (saved != nullptr)
    found.checkpoint = SavedState{saved->path, {.sample = saved->weights.sample, .ledger = saved->ledger}};
  const RunSummary summary = session_->summary(found);
  account_.require(summary.samples_repeated == 0 && summary.samples_skipped == 0,
                   "the summary says {} repeated and {} skipped", summary.samples_repeated, summary.samples_skipped);
  if (session_->ended() == RunEnd::trained) account_.finished(saved != nullptr ? saved->weights : Weights{}, target_);
  if (session_->ended() == RunEnd::stopped && *signal_ > kStorm) {
    const std::int64_t kept = saved != nullptr ? saved->weights.sample : 0;
    account_.require(kept == account_.end(), "stopped in a calm with {} samples, and {} are saved", account_.end(),
                     kept);
  }
  account_.require(engine_.held().empty(), "the run is over, and {} machines are left", engine_.held().size());
  if (storm_.crash_in_act > 0) return;  // what is never written down is lost
  account_.require(summary.samples_redone == account_.redone(), "{} samples were trained again, the summary says {}",
                   account_.redone(), summary.samples_redone);
  if (const auto spent = inventory_.spent(); spent && summary.cost)
    account_.require(std::abs((*spent - *summary.cost).value) < 1e-6,
                     "{} s of machines were paid for, the summary says {} s", spent->value * 3600,
                     summary.cost->value * 3600);
}

/// Long after the storm: everyone is at work that should be.
void World::check_complete() {
  if (over_ || signal_ || inputs_.roles[0].limits.lifetime) return;
  int workers = 0;
  int servers = 0;
  for (const auto& puppet : puppets_) {
    if (puppet->alive() && puppet->attached() && !puppet->leaving()) ++(puppet->server() ? servers : workers);
  }
  // With a deadline to keep, how many is the policy's decision; there is somebody.
  const bool enough = inputs_.spec.deadline ? workers > 0 : workers == inputs_.workers;
  account_.require(enough && servers == inputs_.servers.count,
                   "after {} s of calm {} workers and {} servers are there, and {} and {} are wanted",
                   kComplete.count(), workers, servers, inputs_.workers, inputs_.servers.count);
}

/// In a calm whoever works is not ended without a word.
void World::check_ends(const std::vector<int>& launches) {
  if (agenda_.now() < kStorm + kSettled || signal_) return;
  for (const auto& puppet : puppets_) {
    // Those that others do not reach are given up one day, and so are those that hang.
    const bool ends = std::find(launches.begin(), launches.end(), puppet->launch()) != launches.end() &&
                      !parted_for_good(puppet->launch()) && !puppet->hung();
    account_.require(
        !ends || !puppet->alive() || !puppet->attached() || puppet->leaving() || inventory_.dismissed(puppet->launch()),
        "{} is ended without a word", puppet->name());
  }
}

bool World::parted_for_good(int launch) const {
  return std::any_of(parted_.begin(), parted_.end(), [&](const auto& entry) {
    return entry.second > agenda_.now() && (entry.first.first == launch || entry.first.second == launch);
  });
}

void World::check_held() {
  std::set<int> leaving;
  for (const auto& puppet : puppets_) {
    if (puppet->leaving()) leaving.insert(puppet->launch());
  }
  inventory_.held(engine_.held(), leaving);
}

/// What somebody holds who is there to be asked is not given up.
void World::check_rollback(std::int64_t to) {
  if (to >= account_.end()) return;
  std::set<int> shards;
  for (const auto& [worker, number] : current_) {
    const Connection& connection = connections_.at(number);
    const bool here = connection.open && agenda_.now() - connection.since > Seconds(1);
    if (here && connection.puppet->holds(account_.end())) shards.insert(connection.puppet->shard());
  }
  const int all = inputs_.spec.train->servers ? inputs_.spec.train->servers->count : 1;
  account_.require(static_cast<int>(shards.size()) < all, "rolled back to {}, and {} is held by those who are there",
                   to, account_.end());
}

StormRun World::run() {
  weather_ = storm_;
  engine_.set(engine_storm_);
  schedule_storm(kStorm);
  start_session();
  if (signal_) agenda_.at(*signal_, [this] { shut_down(); });
  while (account_.broken().empty() && !over_ && agenda_.next(kStorm)) {
  }
  weather_ = {};
  engine_.set({});
  agenda_.after(kComplete, [this] { check_complete(); });
  while (account_.broken().empty() && !over_ && agenda_.next(kStorm + kCalm)) {
  }
  if (account_.broken().empty()) check_end();
  if (record_ && session_) {
    told_.push_back(fmt::format("# fleet {}", notes_["fleet"]));
    told_.push_back(fmt::format("# crew {}", notes_["crew"]));
    told_.push_back(fmt::format("# {}", status_json(session_->status()).dump()));
  }
  StormRun run{.broken = account_.broken(),
               .told = std::move(told_),
               .commits = account_.commits(),
               .rollbacks = account_.rollbacks(),
               .crashes = crashes_,
               .machines = static_cast<int>(puppets_.size())};
  run.trained = over_ && session_ && session_->ended() == RunEnd::trained;
  run.stopped = over_ && session_ && session_->ended() == RunEnd::stopped;
  return run;
}

}  // namespace mayfly::storm
