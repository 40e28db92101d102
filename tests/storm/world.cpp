#include "storm/world.h"

#include <algorithm>

#include "storm/puppet.h"

namespace mayfly::storm {
namespace {

constexpr Seconds kStorm{40};
/// Everything that a storm has broken is mended by then, and the rest is trained.
constexpr Seconds kCalm{900};

}  // namespace

World::World(std::uint64_t seed, bool record)
    : record_(record),
      rng_(seed),
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
                                                    : Sync::ssp};
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
            .no_checkpoint = some(0.3, 0.5)};
  engine_storm_ = {.refuse = some(0.4, 0.5),
                   .forget = some(0.3, 0.3),
                   .twice = some(0.4, 0.4),
                   .untold = some(0.3, 0.2),
                   .delay = Seconds(rng_.chance(0.5) ? 0.1 : 2)};
}

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

void World::notify_one() {
  Puppet* victim = some_puppet();
  if (victim == nullptr) return;
  const Seconds left(rng_.chance(0.5) ? 5 : 0.5);
  victim->notice(left);
  if (!rng_.chance(0.1)) agenda_.after(left, [victim] { victim->die(); });
}

void World::freeze_one() {
  if (Puppet* victim = some_puppet()) victim->freeze(Seconds(rng_.exponential(6)));
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
  for (const int launch : engine_.ordered_twice())
    account_.require(false, fmt::format("launch {} was ordered twice", launch));
  if (!over_) {
    return account_.require(false, fmt::format("{} of {} samples after the storm and {} s of calm", account_.end(),
                                               target_, kCalm.count()));
  }
  const auto& failure = session_->failure();
  // A last checkpoint that cannot be written is nobody's fault.
  const bool excused = signal_ && failure && failure->starts_with("stopped, but");
  account_.require(!failure || excused, fmt::format("the run has failed: {}", failure.value_or("")));
  if (failure) return;
  const Saved* saved = newest();
  FoundCheckpoint found;
  if (saved != nullptr)
    found.checkpoint = SavedState{saved->path, {.sample = saved->weights.sample, .ledger = saved->ledger}};
  const RunSummary summary = session_->summary(found);
  account_.require(
      summary.samples_repeated == 0 && summary.samples_skipped == 0,
      fmt::format("the summary says {} repeated and {} skipped", summary.samples_repeated, summary.samples_skipped));
  if (session_->ended() == RunEnd::trained) account_.finished(saved != nullptr ? saved->weights : Weights{}, target_);
  account_.require(engine_.held().empty(),
                   fmt::format("the run is over, and {} machines are left", engine_.held().size()));
}

StormRun World::run() {
  weather_ = storm_;
  engine_.set(engine_storm_);
  schedule_storm(kStorm);
  start_session();
  if (signal_)
    agenda_.at(*signal_, [this] { tell("signal", [](Session& session, Seconds now) { session.signal(now); }); });
  while (account_.broken().empty() && !over_ && agenda_.next(kStorm)) {
  }
  weather_ = {};
  engine_.set({});
  while (account_.broken().empty() && !over_ && agenda_.next(kStorm + kCalm)) {
  }
  if (account_.broken().empty()) check_end();
  if (record_ && session_) {
    told_.push_back(fmt::format("fleet {}", notes_["fleet"]));
    told_.push_back(fmt::format("crew {}", notes_["crew"]));
    told_.push_back(status_json(session_->status()).dump());
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
