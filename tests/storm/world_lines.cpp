// Connections: in order and whole, until they break. What is on its way then is lost.

#include <algorithm>

#include "base/overloaded.h"
#include "storm/puppet.h"
#include "storm/world.h"

namespace mayfly::storm {
namespace {

/// What is said in a storm has come a while before the calm is taken for settled, so that what follows from it is over.
constexpr Seconds kLatest{30};

}  // namespace

Seconds World::delay() {
  const double scale = rng_.chance(weather_.late) ? 1000 : 1;
  return std::min(kLatest, Seconds(rng_.exponential(weather_.delay.count()) * scale));
}

std::optional<int> World::connect(Puppet& puppet) {
  if (!session_ || over_) return std::nullopt;
  connections_[++last_connection_] = {.puppet = &puppet, .since = agenda_.now()};
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

void World::close(int number, Seconds drain) {
  const auto found = connections_.find(number);
  if (found == connections_.end() || !found->second.open) return;
  found->second.open = false;
  found->second.drains = agenda_.now() + drain;
  Puppet* puppet = found->second.puppet;
  const auto worker = found->second.worker;
  agenda_.after(drain + delay(), [puppet, number] {
    if (puppet->alive() && puppet->connection() == number) puppet->lost_line();
  });
  agenda_.after(drain + delay(), [this, number, worker, incarnation = incarnation_] {
    connections_.erase(number);
    if (!worker || incarnation != incarnation_ || !session_) return;
    const auto current = current_.find(*worker);
    if (current == current_.end() || current->second != number) return;
    current_.erase(current);
    inventory_.closed(*worker);
    tell([&] { return fmt::format("closed {}", *worker); },
         [&](Session& session, Seconds now) { session.closed(now, *worker); });
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
                   inventory_.heard(session_time(), worker, word);
                   tell([&] { return fmt::format("hear {} {}", worker, encoded<ToController>(word)); },
                        [&](Session& session, Seconds now) { session.hear(now, worker, word); });
                 },
                 Ignoring<void, FromOperator, FromCarrier>{},
             },
             message);
}

void World::greet(int number, const Hello& hello) {
  Result<Welcome> welcome = fail("nobody is there");
  tell([&] { return "hello " + encoded<ToController>(hello); },
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
  inventory_.greeted(session_time(), hello.launch, welcome->worker);
  perform(Letter{welcome->worker, *welcome});
  tell([&] { return fmt::format("connected {} {}", welcome->worker, encoded<ToController>(hello)); },
       [&](Session& session, Seconds now) { session.connected(now, welcome->worker, hello); });
}

std::vector<std::string> World::unreached(const Puppet& from, const std::vector<std::string>& addresses) {
  std::vector<std::string> found;
  for (const std::string& address : addresses) {
    const Puppet* const to = at_address(address);
    if (to == nullptr) continue;
    const auto parted = parted_.find(std::minmax(from.launch(), to->launch()));
    if (parted != parted_.end() && agenda_.now() < parted->second) found.push_back(address);
  }
  return found;
}

Puppet* World::at_address(const std::string& address) {
  for (const auto& puppet : puppets_) {
    if (puppet->alive() && puppet->address() == address) return puppet.get();
  }
  return nullptr;
}

}  // namespace mayfly::storm
