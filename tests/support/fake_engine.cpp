#include "support/fake_engine.h"

namespace mayfly::support {

void FakeEngine::order(std::span<const Order> orders) {
  for (const Order& order : orders) {
    if (!ever_.insert(order.launch).second) {
      twice_.insert(order.launch);
      continue;
    }
    if (rng_.chance(faults_.forget)) continue;
    launches_[order.launch] = {.role = order.role, .listed = agenda_.now() + faults_.unlisted * rng_.uniform()};
    if (rng_.chance(faults_.refuse)) {
      agenda_.after(delay(), [this, launch = order.launch] {
        ended(launch, {.kind = Ending::Kind::refused, .how = "no capacity"});
      });
      continue;
    }
    see({.launch = order.launch});
    agenda_.after(delay(), [this, launch = order.launch] { come(launch); });
  }
}

void FakeEngine::come(int launch) {
  const auto found = launches_.find(launch);
  if (found == launches_.end()) return;
  found->second.stage = Sighting::Stage::running;
  found->second.since = agenda_.now();
  see(sight_of(launch, found->second));
  machines_.boot(launch, found->second.role);
}

Sighting FakeEngine::sight_of(int launch, const Machine& machine) const {
  Sighting sight{.launch = launch, .stage = machine.stage};
  if (machine.stage != Sighting::Stage::ordered) sight.age = agenda_.now() - machine.since;
  return sight;
}

void FakeEngine::see(Sighting sight) {
  const int tellings = rng_.chance(faults_.untold) ? 0 : rng_.chance(faults_.twice) ? 2 : 1;
  for (int i = 0; i < tellings; ++i) {
    agenda_.after(delay(), [this, sight, listener = listener_] {
      if (listener == listener_ && calls_.seen) calls_.seen(sight);
    });
  }
}

void FakeEngine::tell(int launch) { machines_.notify(launch); }

void FakeEngine::end(int launch) {
  const auto found = launches_.find(launch);
  if (found == launches_.end()) return;
  if (found->second.stage != Sighting::Stage::ordered) machines_.kill(launch);
  ended(launch, {.how = "ended"});
}

void FakeEngine::ended(int launch, Ending ending) {
  if (launches_.erase(launch) == 0) return;
  see({.launch = launch, .stage = Sighting::Stage::gone, .ending = std::move(ending)});
}

void FakeEngine::sweep() {
  while (!launches_.empty()) end(launches_.begin()->first);
}

std::vector<Sighting> FakeEngine::sights() const {
  std::vector<Sighting> all;
  for (const auto& [launch, machine] : launches_) {
    if (machine.listed <= agenda_.now()) all.push_back(sight_of(launch, machine));
  }
  return all;
}

std::vector<int> FakeEngine::held() const {
  std::vector<int> all;
  for (const auto& [launch, machine] : launches_) all.push_back(launch);
  return all;
}

void FakeEngine::adopt(std::span<const Order> kept) {
  std::set<int> known;
  for (const Order& order : kept) {
    known.insert(order.launch);
    ever_.insert(order.launch);
    const auto found = launches_.find(order.launch);
    if (found == launches_.end()) {
      see({.launch = order.launch, .stage = Sighting::Stage::gone, .ending = Ending{.how = "not there"}});
    } else {
      see(sight_of(order.launch, found->second));
    }
  }
  for (const int launch : held()) {
    if (!known.contains(launch)) end(launch);
  }
}

}  // namespace mayfly::support
