#include "run/fleet.h"

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "base/text.h"

namespace mayfly {
namespace {

/// Between two tries of an order that is refused again and again.
constexpr Seconds kMostPatience{60};
/// How many times the expected start a machine may take to its first word.
constexpr double kLate = 4;
/// A machine that an earlier process has told to go has left by then.
constexpr Seconds kLeaveTime{30};
/// An order is on its way so long at the most before an engine lists it.
constexpr Seconds kForgotten{20};

}  // namespace

void Fleet::begin(Seconds now) {
  closed_ = false;
  at(now, {});
}

void Fleet::close() {
  closed_ = true;
  // Machines that were told to leave, and do not, are still ended in time: they cost money.
  std::erase_if(tasks_, [](const auto& entry) { return entry.second.kind != Task::Kind::end; });
  wishes_.orders.clear();
}

/// Those that are about to go have been replaced already.
int Fleet::count(bool server) const {
  return static_cast<int>(std::count_if(launches_.begin(), launches_.end(), [&](const auto& entry) {
    return entry.second.wanted && entry.second.role.server == server;
  }));
}

bool Fleet::missing(bool server) const { return count(server) < (server ? options_.servers : options_.workers); }

const Fleet::Launch* Fleet::find(int launch) const {
  const auto found = launches_.find(launch);
  return found == launches_.end() ? nullptr : &found->second;
}

/// The first role of which fewer are held than the roles say.
MachineRole Fleet::next_role() const {
  std::vector<MachineRole> taken;
  for (const auto& [launch, it] : launches_) {
    if (it.wanted) taken.push_back(it.role);
  }
  for (const MachineRole& role : options_.roles) {
    const auto found = std::find(taken.begin(), taken.end(), role);
    if (found == taken.end()) return role;
    taken.erase(found);
  }
  return options_.roles.back();
}

MachineRole Fleet::spare_role(const MachineKind& kind) const {
  const auto same = std::find_if(options_.roles.rbegin(), options_.roles.rend(),
                                 [&](const MachineRole& role) { return role.type == kind.type; });
  MachineRole role = same != options_.roles.rend() ? *same : options_.roles.back();
  role.market = kind.market;
  if (!kind.zone.empty()) role.zone = kind.zone;
  if (kind.market == Market::on_demand && options_.rent) role.price = *options_.rent;
  return role;
}

int Fleet::order(Seconds now, const MachineRole& role, int instead) {
  const int launch = next_launch_++;
  launches_[launch] = {.role = role, .ordered = now};
  wishes_.orders.push_back({.launch = launch, .role = role, .instead = instead});
  return launch;
}

void Fleet::fill(Seconds now) {
  if (closed_ || !options_.starts) return;
  while (missing(true)) order(now, options_.server);
  while (missing(false)) order(now, next_role());
}

Result<void> Fleet::acquire(Seconds now, const std::vector<MachineRole>& roles) {
  if (!options_.starts) return fail("{} more would help, and this run starts none by itself", roles.size());
  // Orders that wait for the market do not count: those that are rented now stand in for them. Nor do machines that
  // go: some were given back to make room.
  const auto here = std::count_if(launches_.begin(), launches_.end(), [](const auto& entry) {
    const bool waits = entry.second.stage == Sighting::Stage::ordered && entry.second.role.market == Market::spot;
    return !entry.second.role.server && entry.second.wanted && !waits;
  });
  if (here + static_cast<std::int64_t>(roles.size()) > options_.workers)
    return fail("{} more machine{} would help, but this run may use {} at a time (--workers)", roles.size(),
                roles.size() == 1 ? "" : "s", options_.workers);
  for (const MachineRole& role : roles) order(now, role);
  return {};
}

bool Fleet::priced(const MachineKind& kind, UsdPerHour price) {
  bool news = false;
  const auto set = [&](MachineRole& role) {
    if (role.server || role.kind() != kind || role.price == price) return;
    role.price = price;
    news = true;
  };
  for (MachineRole& role : options_.roles) set(role);
  for (auto& [launch, it] : launches_) set(it.role);
  for (auto& [time, task] : tasks_) set(task.role);
  return news;
}

void Fleet::seen(Seconds now, const Sighting& sight) {
  const auto found = launches_.find(sight.launch);
  if (found == launches_.end()) return;  // late, or said twice
  if (sight.stage == Sighting::Stage::gone) return gone(now, sight.launch, sight.ending.value_or(Ending{}));
  // What is said late does not turn a machine back into an order.
  if (sight.stage < found->second.stage) return;
  if (sight.stage != Sighting::Stage::ordered) came(now, sight.launch, found->second, sight);
  found->second.where = sight.where;  // of an order: what it waits for
  found->second.stage = sight.stage;
}

void Fleet::came(Seconds now, int launch, Launch& it, const Sighting& sight) {
  it.pid = sight.pid;
  refusals_ = 0;
  refused_.clear();
  if (it.since) return;
  it.since = now - sight.age;
  if (options_.expected) at(now + kLate * options_.expected(it.role).start, {Task::Kind::await, launch, {}});
  // A time limit is no surprise: the successor is there before it. It comes on top for a while.
  const auto life = it.role.limits.lifetime;
  if (!life) return;
  const Seconds end = *it.since + *life;
  const Seconds early = hand_over_time(*life);
  at(end - early, {Task::Kind::succeed, launch, {}});
  at(end - early / 2, {Task::Kind::retire, launch, {}});
  at(end, {Task::Kind::end, launch, {}});
}

void Fleet::gone(Seconds now, int launch, const Ending& ending) {
  const Launch was = launches_.at(launch);
  launches_.erase(launch);
  successors_.erase(launch);
  if (!closed_ && !was.wanted && deserted()) at(now + options_.replacement, {});
  if (closed_ || !was.wanted) return;
  const bool never_came = ending.kind == Ending::Kind::refused ||
                          (ending.kind == Ending::Kind::failed && was.stage == Sighting::Stage::ordered);
  const Seconds pause = never_came ? next_pause() : options_.replacement;
  at(now + pause, {Task::Kind::refill, launch, was.role});
  if (!never_came || refused_ == ending.how) return;
  refused_ = ending.how;
  wishes_.sayings.push_back(fmt::format("no {} to be had: {}; tried again in {}",
                                        was.role.server ? "server" : was.role.type, ending.how,
                                        format_duration(pause)));
}

bool Fleet::deserted() const {
  const auto orders = [](const auto& entry) {
    const Task::Kind kind = entry.second.kind;
    if (kind == Task::Kind::fill) return true;
    return !entry.second.role.server && (kind == Task::Kind::refill || kind == Task::Kind::replace);
  };
  return options_.starts && count(false) == 0 && std::none_of(tasks_.begin(), tasks_.end(), orders);
}

std::vector<int> Fleet::unknown_to(Seconds now, const std::vector<Sighting>& all) const {
  std::vector<int> unknown;
  for (const auto& [launch, it] : launches_) {
    const bool listed =
        std::any_of(all.begin(), all.end(), [&](const Sighting& sight) { return sight.launch == launch; });
    if (!listed && now - it.ordered > kForgotten) unknown.push_back(launch);
  }
  return unknown;
}

Seconds Fleet::next_pause() {
  const Seconds pause = std::max(options_.replacement, Seconds(0.1)) * std::pow(2.0, std::min(refusals_++, 20));
  return std::min(pause, kMostPatience);
}

void Fleet::greeted(int launch, int worker) {
  const auto found = launches_.find(launch);
  if (found == launches_.end()) return;
  found->second.greeted = true;
  found->second.worker = worker;
}

void Fleet::joined(int worker) {
  if (const auto found = launches_.find(launch_of(worker)); found != launches_.end()) found->second.joined = true;
}

void Fleet::parted(Seconds now, int worker) {
  const auto found = launches_.find(launch_of(worker));
  if (found == launches_.end() || !found->second.joined) return;
  found->second.joined = false;
  found->second.counted = now;
}

std::optional<Seconds> Fleet::uncounted_since(const Launch& launch) const {
  if (launch.joined) return std::nullopt;
  // Had a worker, so it was paid for by then, however late the engine says so.
  return launch.counted ? launch.counted : launch.since;
}

int Fleet::launch_of(int worker) const {
  const auto found = std::find_if(launches_.begin(), launches_.end(),
                                  [&](const auto& entry) { return entry.second.worker == worker; });
  return found == launches_.end() ? -1 : found->first;
}

void Fleet::settled(Seconds now, int launch) {
  if (const auto found = successors_.find(launch); found != successors_.end()) retire(now, found->second);
}

void Fleet::leaves(Seconds now, int launch) {
  const auto found = launches_.find(launch);
  if (closed_ || found == launches_.end() || !found->second.wanted) return;
  found->second.wanted = false;
  at(now + options_.replacement, {Task::Kind::replace, launch, found->second.role});
}

void Fleet::give_up(int launch) {
  if (const auto found = launches_.find(launch); found != launches_.end()) found->second.wanted = false;
}

void Fleet::release(Seconds now, int launch, Seconds patience) {
  const auto found = launches_.find(launch);
  if (found == launches_.end()) return;
  found->second.wanted = false;
  found->second.released = true;
  end_at(now + patience, launch);
}

void Fleet::end(int launch) {
  if (launches_.contains(launch)) wishes_.ends.push_back(launch);
}

void Fleet::end_all() {
  for (const auto& [launch, it] : launches_) wishes_.ends.push_back(launch);
}

void Fleet::end_at(Seconds time, int launch) { at(time, {Task::Kind::end, launch, {}}); }

void Fleet::succeed(Seconds now, int launch) {
  const Launch* it = find(launch);
  // Closed: it may be seen for the first time when the run is over.
  if (closed_ || it == nullptr || !it->wanted) return;
  successors_[order(now, MachineRole(it->role))] = launch;
}

/// Its successor is there, or there is no more time to wait for it.
void Fleet::retire(Seconds now, int launch) {
  const auto heir =
      std::find_if(successors_.begin(), successors_.end(), [&](const auto& entry) { return entry.second == launch; });
  if (heir == successors_.end()) return;
  successors_.erase(heir);
  const auto found = launches_.find(launch);
  if (found == launches_.end()) return;
  found->second.wanted = false;
  wishes_.tells.push_back(launch);
  // While there was one more, a loss was none.
  if (!closed_) at(now, {Task::Kind::refill, launch, found->second.role});
}

void Fleet::perform(Seconds now, const Task& task) {
  const auto found = launches_.find(task.launch);
  switch (task.kind) {
    case Task::Kind::fill:
      return fill(now);
    case Task::Kind::refill:
      // By what is missing now, not by what was lost: machines may have been acquired meanwhile, or others lost.
      if (missing(task.role.server)) order(now, task.role.server ? options_.server : next_role());
      return;
    case Task::Kind::replace:
      // Others may have been acquired meanwhile, or all that was missing ordered.
      if (missing(task.role.server)) order(now, task.role, task.launch);
      return;
    case Task::Kind::succeed:
      return succeed(now, task.launch);
    case Task::Kind::retire:
      return retire(now, task.launch);
    case Task::Kind::await:
      if (found == launches_.end() || found->second.greeted) return;
      wishes_.sayings.push_back(
          fmt::format("machine {} ({}) has not said a word: ended", task.launch,
                      found->second.where.empty() ? found->second.role.type : found->second.where));
      return end(task.launch);
    case Task::Kind::end:
      return end(task.launch);
  }
}

Fleet::Wishes Fleet::wishes(Seconds now) {
  while (!tasks_.empty() && tasks_.begin()->first <= now) {
    const auto next = tasks_.extract(tasks_.begin());
    perform(now, next.mapped());
  }
  return std::exchange(wishes_, {});
}

std::optional<Seconds> Fleet::due() const {
  if (wishes_ != Wishes{}) return Seconds(0);
  return tasks_.empty() ? std::nullopt : std::optional(tasks_.begin()->first);
}

std::string Fleet::record() const {
  Json list = Json::array();
  for (const auto& [launch, it] : launches_) {
    Json one = role_json(it.role);
    one["launch"] = launch;
    one["wanted"] = it.wanted;
    one["worker"] = it.worker;
    if (it.counted) one["counted_s"] = it.counted->count();
    list.push_back(std::move(one));
  }
  return Json{{"next", next_launch_}, {"launches", list}}.dump();
}

void Fleet::restore(Seconds now, std::string_view record) {
  const Json json = Json::parse(record, nullptr, false);
  if (!json.is_object()) return;
  next_launch_ = json.value("next", 0);
  for (const Json& one : json.value("launches", Json::array())) {
    const int launch = one.value("launch", -1);
    Launch& it = launches_[launch] = {
        .role = role_from(one), .wanted = one.value("wanted", true), .worker = one.value("worker", 0)};
    if (one.contains("counted_s")) it.counted = Seconds(one.value("counted_s", 0.0));
    if (!it.wanted) end_at(now + kLeaveTime, launch);
  }
}

std::vector<Order> Fleet::kept() const {
  std::vector<Order> orders;
  for (const auto& [launch, it] : launches_) orders.push_back({.launch = launch, .role = it.role});
  return orders;
}

}  // namespace mayfly
