#include "run/machines.h"

#include <algorithm>

namespace mayfly {

LocalMachines::LocalMachines(Loop& loop, const RunInputs& inputs, LocalEngine::Options options,
                             std::function<Seconds()> now, Calls calls)
    : loop_(loop),
      inputs_(inputs),
      now_(std::move(now)),
      calls_(std::move(calls)),
      engine_(loop, std::move(options), [this](int launch, const Ending& ending) { gone(launch, ending); }),
      weather_timer_(loop),
      rng_(inputs.seed) {}

Result<void> LocalMachines::begin(int next_launch, const Json& processes) {
  next_launch_ = next_launch;
  engine_.adopt(processes);
  for (const int launch : engine_.launches()) {
    held_[launch] = {.server = engine_.role(launch).server};
    watch_lifetime(launch);
  }
  if (closed_ || !inputs_.starts_machines) return {};
  if (const auto started = start_servers(); !started) return started;
  if (inputs_.weather) {
    weather_ = capped(*inputs_.weather, inputs_.workers);
    // What has passed is made up for at once: as many machines as there would be by now.
    const Seconds past = now_() * inputs_.speed;
    while (change_at_ < weather_.changes.size() && weather_.changes[change_at_].time <= past) ++change_at_;
    const int wanted = change_at_ > 0 ? weather_.changes[change_at_ - 1].available : 0;
    while (static_cast<int>(count(false)) < wanted) {
      if (const auto started = start(next_role()); !started) return started;
    }
    schedule_weather();
    return {};
  }
  while (static_cast<int>(count(false)) < inputs_.workers) {
    if (const auto started = start(next_role()); !started) return started;
  }
  return {};
}

std::size_t LocalMachines::count(bool server) const {
  const auto launches = engine_.launches();
  return static_cast<std::size_t>(std::count_if(launches.begin(), launches.end(),
                                                [&](int launch) { return engine_.role(launch).server == server; }));
}

Result<void> LocalMachines::start_servers() {
  while (static_cast<int>(count(true)) < inputs_.servers.count) {
    const MachineRole role{.type = inputs_.servers.type,
                           .market = Market::on_demand,
                           .price = inputs_.servers.price,
                           .server = true,
                           .limits = inputs_.servers.limits};
    if (auto started = start(role); !started) return started;
  }
  return {};
}

/// The first role of which fewer run than the roles say.
const MachineRole& LocalMachines::next_role() const {
  std::vector<MachineRole> taken;
  for (const int launch : engine_.launches()) taken.push_back(engine_.role(launch));
  for (const MachineRole& role : inputs_.roles) {
    const auto found = std::find(taken.begin(), taken.end(), role);
    if (found == taken.end()) return role;
    taken.erase(found);
  }
  return inputs_.roles.back();
}

Result<void> LocalMachines::start(const MachineRole& role) {
  const int launch = next_launch_++;
  if (auto started = engine_.start(launch, role); !started) return started;
  held_[launch] = {.server = role.server};
  watch_lifetime(launch);
  calls_.changed();
  return {};
}

void LocalMachines::start_or_say(const MachineRole& role) {
  if (closed_) return;
  if (const auto started = start(role); !started) calls_.say(started.error().message);
}

MachineRole LocalMachines::spare_role(Market market) const {
  MachineRole role = inputs_.roles.back();
  role.market = market;
  if (market == Market::on_demand && inputs_.priced) role.price = inputs_.job->on_demand;
  return role;
}

Result<void> LocalMachines::acquire(const std::vector<MachineRole>& roles) {
  if (!inputs_.starts_machines) return fail("{} more would help, and this run starts none by itself", roles.size());
  if (count(false) + roles.size() > static_cast<std::size_t>(inputs_.workers))
    return fail("{} more machine{} would help, but this run may use {} at a time (--workers)", roles.size(),
                roles.size() == 1 ? "" : "s", inputs_.workers);
  for (const MachineRole& role : roles) {
    if (auto started = start(role); !started) return started;
  }
  return {};
}

void LocalMachines::release(int launch, Seconds patience) {
  held_[launch].replace = false;
  after(patience, [this, launch] { engine_.kill(launch); });
}

void LocalMachines::replace_early(int launch) {
  // With a trace it is the trace that says who comes.
  if (closed_ || !engine_.runs(launch) || !held_[launch].replace) return;
  if (inputs_.weather && !held_[launch].server) return;
  held_[launch].replace = false;
  engine_.vacate(launch);
  after(inputs_.times.replacement, [this, role = engine_.role(launch)] { start_or_say(role); });
}

bool LocalMachines::released(int launch) const {
  const auto found = held_.find(launch);
  return found != held_.end() && !found->second.replace;
}

void LocalMachines::gone(int launch, const Ending& ending) {
  const Held was = held_[launch];
  held_.erase(launch);
  std::erase(leaving_, launch);
  successors_.erase(launch);
  calls_.changed();
  calls_.ended(launch, ending);
  if (closed_ || !was.replace) return;
  if (was.server) {
    after(inputs_.times.replacement, [this] {
      if (closed_) return;
      if (const auto started = start_servers(); !started) calls_.say(started.error().message);
    });
  } else if (!inputs_.weather) {
    after(inputs_.times.replacement, [this] {
      if (static_cast<int>(count(false)) < inputs_.workers) start_or_say(next_role());
    });
  }
}

/// A time limit is no surprise: the successor is there before it. It comes on top for a while.
void LocalMachines::watch_lifetime(int launch) {
  const auto lifetime = engine_.role(launch).limits.lifetime;
  if (!lifetime) return;
  const Seconds left = *lifetime - engine_.age(launch);
  const Seconds early = hand_over_time(*lifetime);
  after(std::max(Seconds(0), left - early), [this, launch] { succeed(launch); });
  after(std::max(Seconds(0), left - early / 2), [this, launch] { retire(launch); });
  after(std::max(Seconds(0), left), [this, launch] { engine_.kill(launch); });
}

void LocalMachines::succeed(int launch) {
  if (closed_ || !engine_.runs(launch) || !held_[launch].replace) return;
  const MachineRole role = engine_.role(launch);
  const int successor = next_launch_;
  if (const auto started = start(role); !started) return calls_.say(started.error().message);
  successors_[successor] = launch;
}

void LocalMachines::settled(int launch) {
  if (const auto found = successors_.find(launch); found != successors_.end()) retire(found->second);
}

/// Its successor is there, or there is no more time to wait for it.
void LocalMachines::retire(int launch) {
  const auto heir =
      std::find_if(successors_.begin(), successors_.end(), [&](const auto& entry) { return entry.second == launch; });
  if (heir == successors_.end()) return;
  successors_.erase(heir);
  if (!engine_.runs(launch)) return;
  held_[launch].replace = false;
  leaving_.push_back(launch);
  engine_.notify(launch);
}

void LocalMachines::schedule_weather() {
  if (change_at_ >= weather_.changes.size() || closed_) return;
  const Seconds at = weather_.changes[change_at_].time / inputs_.speed;
  weather_timer_.start(std::max(Seconds(0), at - now_()), [this] {
    weather(weather_.changes[change_at_++]);
    schedule_weather();
  });
}

void LocalMachines::weather(const Change& change) {
  if (closed_) return;
  for (int i = 0; i < change.removed; ++i) {
    std::vector<int> spot;
    for (const int launch : engine_.launches()) {
      const bool leaving = std::find(leaving_.begin(), leaving_.end(), launch) != leaving_.end();
      if (engine_.role(launch).market == Market::spot && !leaving) spot.push_back(launch);
    }
    if (spot.empty()) break;
    const int victim = spot[static_cast<std::size_t>(rng_.below(static_cast<int>(spot.size())))];
    leaving_.push_back(victim);
    held_[victim].replace = false;
    engine_.notify(victim);
    after(inputs_.times.notice, [this, victim] { engine_.kill(victim); });
  }
  for (int i = 0; i < change.added; ++i) start_or_say(next_role());
}

void LocalMachines::after(Seconds time, std::function<void()> call) {
  const int number = next_timer_++;
  auto [timer, fresh] = timers_.try_emplace(number, loop_);
  timer->second.start(time, [this, number, call = std::move(call)] {
    call();
    // Not while it runs: the timer owns this very function.
    loop_.post([this, number] { timers_.erase(number); });
  });
}

}  // namespace mayfly
