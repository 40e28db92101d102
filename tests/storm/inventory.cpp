#include "storm/inventory.h"

#include <algorithm>

#include "base/json.h"

namespace mayfly::storm {
namespace {

/// As long as the session may take from what it is told to what follows, at the most.
constexpr Seconds kMoment{0.6};
/// An order is not listed for so long at the most.
constexpr Seconds kUnlisted{20};
/// A formation that stands before that gives nobody reason to be given up.
constexpr Seconds kFormation{9.9};

bool has_command(const Record& record, std::string_view command) {
  const std::string text = fmt::format("\"command\":\"{}\"", command);
  return std::any_of(record.lines.begin(), record.lines.end(),
                     [&](const std::string& line) { return line.find(text) != std::string::npos; });
}

/// Of "at-7".
int launch_at(const std::string& address) { return std::stoi(address.substr(3)); }

}  // namespace

void Inventory::began(Seconds now) {
  began_ = formed_ = now;
  signal_.reset();
  after_signal_ = 0;
  spoke_.clear();
  notices_.clear();
  out_.clear();
  for (auto& [launch, machine] : machines_) {
    machine.since.reset();
    machine.from.reset();
    machine.ready = false;
    machine.ordered = {};  // no process knows when another has ordered
  }
}

Inventory::Machine* Inventory::machine_of(WorkerId worker) {
  const auto launch = launches_.find(worker);
  if (launch == launches_.end()) return nullptr;
  const auto found = machines_.find(launch->second);
  return found == machines_.end() ? nullptr : &found->second;
}

void Inventory::seen(Seconds now, const Sighting& sight) {
  const auto found = machines_.find(sight.launch);
  if (found == machines_.end() || found->second.gone) return;
  Machine& machine = found->second;
  if (sight.stage == Sighting::Stage::gone) return gone(now, machine);
  if (sight.stage != Sighting::Stage::ordered && !machine.since) machine.since = now - sight.age;
}

void Inventory::listed(Seconds now, const std::vector<Sighting>& all) {
  for (const Sighting& sight : all) seen(now, sight);
  for (auto& [launch, machine] : machines_) {
    const bool there = std::any_of(all.begin(), all.end(),
                                   [&, number = launch](const Sighting& sight) { return sight.launch == number; });
    const bool old = now - machine.ordered > kUnlisted;
    if (!there && old && !machine.gone) gone(now, machine);
  }
}

void Inventory::signalled(Seconds now) {
  if (signal_) return;
  signal_ = now;
  in_hand_ = std::max(inputs_.workers, static_cast<int>(given_.size()));
}

/// A machine whose worker never joined, or was lost before it, was paid for all the same.
void Inventory::gone(Seconds now, Machine& machine) {
  machine.gone = true;
  const bool joined = std::any_of(paid_from_.begin(), paid_from_.end(),
                                  [&](const auto& entry) { return machine_of(entry.first) == &machine; });
  if (const auto from = uncounted(machine); from && !joined && !finished_) machine.seconds += now - *from;
}

void Inventory::greeted(Seconds now, int launch, WorkerId worker) {
  launches_[worker] = launch;
  spoke_[worker] = now;
  taken_back(worker);
}

void Inventory::closed(WorkerId worker) {
  spoke_.erase(worker);
  taken_back(worker);
}

/// It is given again, so it does not count as one more.
void Inventory::taken_back(WorkerId worker) {
  if (out_.erase(worker) == 0) return;
  for (auto& [other, out] : out_) {
    if (const auto found = out.others.find(worker); found != out.others.end()) --found->second;
  }
}

void Inventory::formed(Seconds now) {
  formed_ = now;
  out_.clear();
}

/// Where nobody may be more than `bound` updates ahead of another: whoever is slow may itself have been ahead.
void Inventory::leased(WorkerId worker, const Lease& lease) {
  const auto& servers = *inputs_.spec.train->servers;
  for (auto& [other, out] : out_) {
    if (other == worker || servers.sync != ServersSpec::Sync::ssp) continue;
    account_.require(++out.others[worker] <= 2 * servers.bound + 1,
                     "w{} is given its lease {} while w{} has one, and the bound is {}", worker, out.others[worker],
                     other, servers.bound);
  }
  // One that had its notice finishes what it has, and is not waited for.
  if (!notices_.contains(worker)) out_[worker] = {.lease = lease.lease};
}

void Inventory::heard(Seconds now, WorkerId worker, const FromMember& message) {
  if (!spoke_.contains(worker)) return;
  spoke_[worker] = now;
  if (std::holds_alternative<Unable>(message)) unable_.insert(worker);
  const auto* broken = std::get_if<Broken>(&message);
  if (broken != nullptr && broken->unreached) {
    apart_.insert(launches_.at(worker));
    for (const std::string& address : *broken->unreached) apart_.insert(launch_at(address));
  }
  if (broken != nullptr || std::holds_alternative<StepDone>(message) || std::holds_alternative<Pushed>(message))
    given_.erase(worker);
  const auto* pushed = std::get_if<Pushed>(&message);
  const auto out = out_.find(worker);
  const bool over = pushed != nullptr && out != out_.end() && out->second.lease == pushed->lease;
  if (over) out_.erase(worker);
  // One that stands anew has nothing in hand, whatever it was given before.
  if (std::holds_alternative<Broken>(message) || std::holds_alternative<Formed>(message)) taken_back(worker);
  Machine* const machine = machine_of(worker);
  if (machine == nullptr) return;
  if (std::holds_alternative<Ready>(message) && !std::exchange(machine->ready, true))
    machine->from = uncounted(*machine);
  if (const auto* leaving = std::get_if<Leaving>(&message)) {
    out_.erase(worker);  // not waited for any more
    // One that an earlier process has heard of may have been replaced by it.
    const bool known = !noticed_.insert(launches_.at(worker)).second;
    notices_.try_emplace(worker, Heard{.time = now, .left = Seconds(leaving->left_s), .replaced = known});
  }
}

void Inventory::ordered(Seconds now, const Order& order) {
  machines_[order.launch] = {.role = order.role, .ordered = now};
  for (auto& [worker, notice] : notices_) notice.replaced = notice.replaced || launches_[worker] == order.instead;
  account_.require(!finished_, "launch {} is ordered when the training is over", order.launch);
  account_.require(!signal_ || now - *signal_ < 3 * inputs_.times.silence,
                   "launch {} is ordered for a run that was told to stop", order.launch);
}

void Inventory::wrote(Seconds now, const Letter& letter) {
  if (std::holds_alternative<Halt>(letter.message)) taken_back(letter.to);
  if (std::holds_alternative<Leave>(letter.message)) {
    out_.erase(letter.to);  // not waited for any more
    if (launches_.contains(letter.to)) dismissed_.insert(launches_.at(letter.to));
  }
  const auto* proceed = std::get_if<Proceed>(&letter.message);
  if (std::holds_alternative<Lease>(letter.message) || (proceed != nullptr && !proceed->counts.empty()))
    given_[letter.to] = now;
  if (const auto* lease = std::get_if<Lease>(&letter.message)) leased(letter.to, *lease);
  const auto* form = std::get_if<Form>(&letter.message);
  const bool hands_over = form != nullptr && form->rank == form->source;
  const bool works = (form != nullptr && !hands_over) || std::holds_alternative<Attach>(letter.message);
  const auto notice = notices_.find(letter.to);
  // Where the run has been told to stop, those who go stand together to save it.
  account_.require(!works || signal_ || notice == notices_.end() || now - notice->second.time < Seconds(3),
                   "w{} said {} s ago that it will be taken, and is to work", letter.to,
                   works && notice != notices_.end() ? (now - notice->second.time).count() : 0);
}

void Inventory::recorded(const Record& record) {
  const Seconds now = record.event.time;
  const bool news = is_news(record);
  if (const auto* joined = std::get_if<Joined>(&record.event.event); joined != nullptr && news) {
    Machine* const machine = machine_of(joined->worker);
    if (machine != nullptr) {
      // One that was left out for a while is paid for all the same.
      const Seconds from = machine->from.value_or(machine->counted.value_or(now));
      paid_from_[joined->worker] = std::max(from, machine->counted.value_or(from));
    }
  }
  if (const auto* gone = std::get_if<Lost>(&record.event.event)) {
    lost(now, gone->worker);
    ended(now, gone->worker);
  }
  if (const auto* step = std::get_if<StepCommitted>(&record.event.event); step != nullptr && news) committed(*step);
  for (const std::string& line : record.lines) {
    if (line.find("\"command\":\"release\"") == std::string::npos) continue;
    const Json json = Json::parse(line, nullptr, false);
    const WorkerId worker = std::stoi(json.value("worker", "w0").substr(1));
    ended(now, worker);
    out_.erase(worker);  // not waited for any more
    if (launches_.contains(worker)) given_back_.insert(launches_.at(worker));
  }
  if (has_command(record, "finish") && !finished_) {
    finished_ = now;
    while (!paid_from_.empty()) ended(now, paid_from_.begin()->first);
  }
}

void Inventory::committed(const StepCommitted& step) {
  if (signal_) {
    ++after_signal_;
    account_.require(after_signal_ <= in_hand_ + 1, "{} steps since it was told to stop, and {} were in hand",
                     after_signal_, in_hand_);
  }
  const TrainSpec& train = *inputs_.spec.train;
  const bool wait = !train.servers || train.servers->sync == ServersSpec::Sync::bsp;
  account_.require(!wait || step.samples == train.batch, "a step has {} samples where all wait for {}", step.samples,
                   train.batch);
}

/// Its money does not run any more.
void Inventory::ended(Seconds now, WorkerId worker) {
  const auto found = paid_from_.find(worker);
  if (found == paid_from_.end()) return;
  machine_of(worker)->seconds += now - found->second;
  machine_of(worker)->counted = now;
  paid_from_.erase(found);
}

/// Has the session reason to take it for lost?
void Inventory::lost(Seconds now, WorkerId worker) {
  const Machine* const machine = machine_of(worker);
  if (machine == nullptr || machine->gone || unable_.contains(worker) || dismissed_.contains(launches_.at(worker)))
    return;
  // It may be out of reach, or hang.
  if (apart_.contains(launches_.at(worker))) return;
  if (const auto given = given_.find(worker); given != given_.end() && now - given->second > inputs_.times.step.floor)
    return;
  if (now - formed_ > kFormation) return;
  const auto spoke = spoke_.find(worker);
  const Seconds silence = now - (spoke == spoke_.end() ? began_ : spoke->second);
  account_.require(silence >= inputs_.times.silence, "w{} is taken for lost after {} s", worker, silence.count());
}

void Inventory::look(Seconds now) {
  for (const auto& [worker, time] : spoke_) {
    const bool sent_away = dismissed_.contains(launches_.at(worker));
    account_.require(sent_away || now - time < 3 * inputs_.times.silence, "w{} is silent for {} s, and nobody minds",
                     worker, (now - time).count());
  }
  if (finished_ || signal_) return;
  std::set<int> leaving;  // as far as this process knows
  for (const auto& [worker, notice] : notices_) leaving.insert(launches_.at(worker));
  const auto stay = std::count_if(machines_.begin(), machines_.end(), [&](const auto& entry) {
    const auto& [launch, machine] = entry;
    return !machine.role.server && !machine.gone && !leaves(launch) && !leaving.contains(launch);
  });
  for (auto& [worker, notice] : notices_) {
    const bool due = now - notice.time > inputs_.times.replacement + kMoment && now - began_ > kMoment;
    const Machine* const machine = machine_of(worker);
    const bool limited = machine == nullptr || machine->role.limits.lifetime.has_value();
    // Others were acquired before it came to that, or seem to be there.
    if (!limited && !machine->role.server && stay >= inputs_.workers) notice.replaced = true;
    account_.require(!due || notice.replaced || limited || machine->gone || leaves(launches_.at(worker)),
                     "launch {} will be taken, and nothing is ordered instead", launches_.at(worker));
  }
}

void Inventory::held(const std::vector<int>& launches, const std::set<int>& leaving) {
  int workers = 0;
  int servers = 0;
  int rented = 0;  // beside orders that wait for the market
  int successors = 0;
  for (const int launch : launches) {
    const MachineRole& role = machines_[launch].role;
    if (role.limits.lifetime) ++successors;
    if (leaving.contains(launch) || leaves(launch)) continue;
    ++(role.server ? servers : role.market == Market::on_demand ? rented : workers);
  }
  account_.require(rented <= inputs_.workers + successors, "{} workers are rented, and {} wanted", rented,
                   inputs_.workers);
  account_.require(workers <= inputs_.workers + successors && servers <= inputs_.servers.count,
                   "{} workers and {} servers are held, and {} and {} are wanted", workers, servers, inputs_.workers,
                   inputs_.servers.count);
}

std::optional<Usd> Inventory::spent() const {
  if (!finished_) return std::nullopt;
  Usd sum{};
  for (const auto& [launch, machine] : machines_) {
    if (!machine.role.server) sum += machine.role.price * machine.seconds;
  }
  return sum + inputs_.servers.price * static_cast<double>(inputs_.servers.count) * *finished_;
}

}  // namespace mayfly::storm
