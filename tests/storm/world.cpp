#include "storm/world.h"

#include <algorithm>

#include "base/overloaded.h"
#include "storm/puppet.h"

namespace mayfly::storm {
namespace {

constexpr Seconds kStorm{40};
/// Everything that a storm has broken is mended by then, and the rest is trained.
constexpr Seconds kCalm{900};
constexpr Seconds kListEvery{10};

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

// Connections: in order and whole, until they break. What is on its way then is lost.

Seconds World::delay() {
  const double scale = rng_.chance(weather_.late) ? 1000 : 1;
  return Seconds(rng_.exponential(weather_.delay.count()) * scale);
}

std::optional<int> World::connect(Puppet& puppet) {
  if (!session_ || over_) return std::nullopt;
  connections_[++last_connection_] = {.puppet = &puppet};
  return last_connection_;
}

void World::say(int number, const ToController& message) {
  const auto found = connections_.find(number);
  if (found == connections_.end() || !found->second.open) return;
  Connection& connection = found->second;
  const bool hello = std::holds_alternative<Hello>(message);
  const bool swapped = !hello && rng_.chance(weather_.swapped);
  const Seconds time = swapped ? agenda_.now() + delay() : std::max(connection.last_in, agenda_.now() + delay());
  connection.last_in = std::max(connection.last_in, time);
  for (int i = !hello && rng_.chance(weather_.twice) ? 2 : 1; i > 0; --i)
    agenda_.at(time, [this, number, message] { hear(number, message); });
}

void World::close(int number) {
  const auto found = connections_.find(number);
  if (found == connections_.end() || !found->second.open) return;
  found->second.open = false;
  Puppet* puppet = found->second.puppet;
  const auto worker = found->second.worker;
  agenda_.after(delay(), [puppet, number] {
    if (puppet->alive() && puppet->connection() == number) puppet->lost_line();
  });
  agenda_.after(delay(), [this, number, worker, incarnation = incarnation_] {
    connections_.erase(number);
    if (!worker || incarnation != incarnation_ || !session_) return;
    const auto current = current_.find(*worker);
    if (current == current_.end() || current->second != number) return;
    current_.erase(current);
    tell(fmt::format("closed {}", *worker), [&](Session& session, Seconds now) { session.closed(now, *worker); });
  });
}

void World::hear(int number, const ToController& message) {
  const auto found = connections_.find(number);
  if (found == connections_.end() || !found->second.open || !session_) return;
  std::visit(Overloaded{
                 [&](const Hello& hello) { greet(number, hello); },
                 [&](const FromMember& word) {
                   if (!found->second.worker) return;
                   const WorkerId worker = *found->second.worker;
                   tell(fmt::format("hear {} {}", worker, encoded<ToController>(word)),
                        [&](Session& session, Seconds now) { session.hear(now, worker, word); });
                 },
                 Ignoring<void, FromOperator>{},
             },
             message);
}

void World::greet(int number, const Hello& hello) {
  Result<Welcome> welcome = fail("nobody is there");
  tell(fmt::format("hello {}", encoded<ToController>(hello)),
       [&](Session& session, Seconds now) { welcome = session.hello(now, hello); });
  const auto found = connections_.find(number);
  if (!session_ || found == connections_.end()) return;
  if (!welcome) {
    perform(Letter{-number, Refused{welcome.error().message}});
    return;
  }
  // An older connection of the same worker is dropped without a word.
  if (const auto older = current_.find(welcome->worker); older != current_.end()) {
    const int before = older->second;
    current_.erase(older);
    close(before);
  }
  found->second.worker = welcome->worker;
  current_[welcome->worker] = number;
  perform(Letter{welcome->worker, *welcome});
  tell(fmt::format("connected {} {}", welcome->worker, encoded<ToController>(hello)),
       [&](Session& session, Seconds now) { session.connected(now, welcome->worker, hello); });
}

Puppet* World::at_address(const std::string& address) {
  for (const auto& puppet : puppets_) {
    if (puppet->alive() && puppet->address() == address) return puppet.get();
  }
  return nullptr;
}

// The controller's process.

void World::start_session() {
  if (over_) return;
  ++incarnation_;
  dead_ = false;
  session_ = std::make_unique<Session>(inputs_, [this](const MachineRole& role) { return engine_.expected(role); });
  const Seconds time = session_->restore(lines_, notes_);
  stood_still_ = agenda_.now() - time;
  session_->acts();  // only what the store has already
  engine_.connect({.seen = [this](const Sighting& sight) {
    tell(fmt::format("seen {} {} {}", sight.launch, name(sight.stage), sight.ending ? sight.ending->how : ""),
         [&](Session& session, Seconds now) { session.seen(now, sight); });
  }});
  if (record_) told_.push_back(fmt::format("{:.4f} starts at {:.4f}", agenda_.now().count(), time.count()));
  engine_.adopt(session_->fleet().kept());
  tell("begin", [](Session& session, Seconds now) { session.begin(now); });
  const int incarnation = incarnation_;
  const auto list = [this, incarnation](const auto& again) -> void {
    agenda_.after(kListEvery, [this, incarnation, again] {
      if (incarnation != incarnation_ || !session_) return;
      tell("listed", [&](Session& session, Seconds now) { session.listed(now, engine_.sights()); });
      again(again);
    });
  };
  list(list);
}

void World::crash() {
  if (!session_ || over_) return;
  ++crashes_;
  if (record_) told_.push_back(fmt::format("{:.4f} dies", agenda_.now().count()));
  session_.reset();
  ++incarnation_;
  engine_.disconnect();
  std::vector<int> all;
  for (const auto& [number, connection] : connections_) all.push_back(number);
  for (const int number : all) close(number);
  current_.clear();
  agenda_.after(Seconds(0.1 + rng_.exponential(2)), [this] { start_session(); });
}

template <class Call>
void World::tell(const std::string& what, Call call) {
  if (!session_ || over_ || !account_.broken().empty()) return;
  if (record_) told_.push_back(fmt::format("{:.4f} {}", session_time().count(), what));
  call(*session_, session_time());
  perform();
}

void World::perform() {
  if (std::exchange(performing_, true)) return;
  for (auto acts = session_->acts(); !acts.empty() && !dead_; acts = session_->acts()) {
    // Anything of what is wanted may be done when the process dies, as long as it is the first of it.
    const bool dies = rng_.chance(weather_.crash_in_act);
    const std::size_t most =
        dies ? static_cast<std::size_t>(rng_.below(static_cast<int>(acts.size()) + 1)) : acts.size();
    for (std::size_t i = 0; i < most; ++i) std::visit([this](const auto& act) { perform(act); }, acts[i]);
    dead_ = dies && !over_;
  }
  performing_ = false;
  if (dead_) return crash();
  watch_clock();
}

void World::watch_clock() {
  const auto due = session_ ? session_->due() : std::nullopt;
  if (!due || over_) return;
  const int alarm = ++alarm_;
  // A hair later than that: the sum is rounded, and a timer is never early.
  agenda_.at(*due + stood_still_ + Seconds(1e-6), [this, alarm, incarnation = incarnation_] {
    if (alarm != alarm_ || incarnation != incarnation_) return;
    tell("pass", [](Session& session, Seconds now) { session.pass(now); });
  });
}

void World::perform(const Letter& letter) {
  // A negative number is a connection that belongs to nobody yet.
  const auto current = current_.find(letter.to);
  const int number = letter.to < 0 ? -letter.to : current == current_.end() ? 0 : current->second;
  const auto found = connections_.find(number);
  if (found == connections_.end() || !found->second.open) return;
  const Seconds time = std::max(found->second.last_out, agenda_.now() + delay());
  found->second.last_out = time;
  agenda_.at(time, [this, number, message = letter.message] {
    const auto there = connections_.find(number);
    if (there != connections_.end() && there->second.open && there->second.puppet->connection() == number)
      there->second.puppet->hear(message);
  });
}

void World::perform(const Cut& act) {
  const auto found = current_.find(act.worker);
  if (found == current_.end()) return;
  const int number = found->second;
  current_.erase(found);
  close(number);
}

void World::perform(const Ask& act) {
  for (const Order& order : act.orders) {
    const auto noted = notes_.find("fleet");
    account_.require(
        noted != notes_.end() && noted->second.find(fmt::format("\"launch\":{},", order.launch)) != std::string::npos,
        fmt::format("launch {} is ordered before it is written down", order.launch));
  }
  engine_.order(act.orders);
  for (const int launch : act.tells) engine_.tell(launch);
  for (const int launch : act.ends) engine_.end(launch);
}

void World::perform(const Record& act) {
  account_.stored(act);
  lines_.push_back(journal_line(act.event.time, act.event.event));
  if (!act.key.empty()) notes_[act.key] = act.note;
}

void World::perform(const JournalLine& act) {
  if (record_) told_.push_back("  " + act.text);
  lines_.push_back(act.text);
}

void World::perform(const Note& act) {
  notes_[act.key] = act.value;
  if (act.key == "formation") account_.formed(std::stoll(act.value));
}

bool World::save(const std::string& path, const Weights& weights, const std::vector<SampleRange>& ledger) {
  if (rng_.chance(weather_.no_checkpoint)) return false;
  account_.saved(weights, ledger);
  std::erase_if(vault_, [&](const Saved& saved) { return saved.path == path; });
  vault_.push_back({path, weights, ledger});
  return true;
}

const Saved* World::checkpoint(const std::string& path) const {
  const auto found = std::find_if(vault_.begin(), vault_.end(), [&](const Saved& saved) { return saved.path == path; });
  return found == vault_.end() ? nullptr : &*found;
}

const Saved* World::newest() const {
  const auto found = std::max_element(
      vault_.begin(), vault_.end(), [](const Saved& a, const Saved& b) { return a.weights.sample < b.weights.sample; });
  return found == vault_.end() ? nullptr : &*found;
}

void World::perform(const Seek&) {
  const int incarnation = incarnation_;
  agenda_.after(delay(), [this, incarnation] {
    FoundCheckpoint found;
    if (const Saved* saved = newest())
      found.checkpoint = SavedState{saved->path, {.sample = saved->weights.sample, .ledger = saved->ledger}};
    agenda_.after(delay(), [this, incarnation, found] {
      if (incarnation != incarnation_) return;
      tell(fmt::format("sought {}", found.checkpoint ? found.checkpoint->path.string() : "nothing"),
           [&](Session& session, Seconds now) { session.sought(now, found); });
    });
  });
}

void World::perform(const Publish& act) {
  const int incarnation = incarnation_;
  agenda_.after(delay(), [this, incarnation, checkpoint = act.checkpoint] {
    // One is kept.
    if (const Saved* saved = this->checkpoint(checkpoint.path)) {
      const std::int64_t sample = saved->weights.sample;
      std::erase_if(vault_, [&](const Saved& other) { return other.weights.sample < sample; });
    }
    agenda_.after(delay(), [this, incarnation, checkpoint] {
      if (incarnation != incarnation_) return;
      tell(fmt::format("published {}", checkpoint.path),
           [&](Session& session, Seconds now) { session.published(now, checkpoint, {}); });
    });
  });
}

void World::perform(const Close&) { over_ = true; }

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
