// What workers are given to do, and what becomes of it.

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/json.h"
#include "base/overloaded.h"
#include "run/server_crew.h"

namespace mayfly {
namespace {

/// Commits a server may have missed when its connection or the controller went: as many can be told again.
constexpr std::size_t kCommitsKept = 16;
/// Updates back to which staleness is counted.
constexpr std::size_t kHistory = 4096;

/// First and count of each run of numbers that follow each other: the parts of a step usually do.
std::vector<std::int64_t> runs(const std::vector<std::int64_t>& numbers) {
  std::vector<std::int64_t> found;
  for (const std::int64_t number : numbers) {
    if (!found.empty() && found[found.size() - 2] + found.back() == number) {
      ++found.back();
    } else {
      found.insert(found.end(), {number, 1});
    }
  }
  return found;
}

/// Written at every update, so short, and as text at once.
std::string record_of(const Commit& commit) {
  return fmt::format("[{},{},{},{},{},[{}]]", commit.formation, commit.from, commit.sample, commit.step, commit.workers,
                     fmt::join(runs(commit.leases), ","));
}

std::optional<Commit> commit_in(const Json& record) {
  if (!record.is_array() || record.size() != 6) return std::nullopt;
  Commit commit{.formation = record[0],
                .from = record[1],
                .sample = record[2],
                .leases = {},
                .step = record[3],
                .workers = record[4]};
  for (std::size_t at = 0; at + 1 < record[5].size(); at += 2) {
    for (std::int64_t i = 0; i < record[5][at + 1]; ++i) commit.leases.push_back(record[5][at].get<std::int64_t>() + i);
  }
  return commit;
}

}  // namespace

std::optional<Crew::Step> ServerCrew::hear(WorkerId from, const FromMember& message) {
  std::optional<Step> step;
  std::visit(Overloaded{
                 [&](const Formed& word) { formed(from, word); }, [&](const Broken& word) { broke(from, word); },
                 [&](const Pushed& pushed) {
                   if (stands(from) && !serves(from) && hands_.contains(from)) step = count(from, pushed);
                 },
                 [&](const CheckpointWritten&) { answered(from); }, [&](const CheckpointFailed&) { answered(from); },
                 Ignoring<void, Reachable, StepDone>{},                                      // there is no mesh
                 Ignoring<void, Ready, Leaving, AtRisk, Unable, Fed, Measurement, Alive>{},  // for the session
             },
             message);
  return step;
}

void ServerCrew::answered(WorkerId from) {
  if (writer_ != from) return;
  writer_.reset();
  if (save_wanted_) write_checkpoint();
}

void ServerCrew::broke(WorkerId from, const Broken& message) {
  if (!stands(from) || message.formation != formation_) return;
  if (serves(from)) {
    broken_ = server_broken_ = true;
    servers_.at(from).sample.reset();  // whatever it holds, it is not what was thought
    return;
  }
  const auto hand = hands_.find(from);
  if (hand == hands_.end()) return;  // said before it went
  if (hand->second.lease) take_back(*hand->second.lease);
  hand->second.attached = false;
  bool known = false;
  for (const auto& [id, server] : servers_) {
    if (!message.unreached || std::ranges::find(*message.unreached, server.address) == message.unreached->end())
      continue;
    unreached_.add(from, id);
    known = true;
  }
  // One that cannot reach a server stays as it is until it is known who is left out; the others train on.
  broken_ = broken_ || !known;
}

std::vector<WorkerId> ServerCrew::apart() const {
  // A server only where no worker reaches it: with it goes a part of the state.
  return unreached_.cheapest(
      [&](WorkerId one) { return serves(one) ? std::max(0.5, static_cast<double>(members_.size()) - 0.5) : 1; });
}

void ServerCrew::formed(WorkerId from, const Formed& message) {
  if (!stands(from)) return;
  if (serves(from)) return server_formed(from, message);
  const auto hand = hands_.find(from);
  if (hand == hands_.end() || message.formation != formation_ || phase_ != Phase::training || hand->second.attached)
    return;
  // At least as far as the slowest of the others: who comes late has nothing to catch up with, and holds no other
  // worker back. Who comes back stays as far ahead as it was.
  hand->second.updates = std::max(hand->second.updates, pace());
  hand->second.attached = true;
  unreached_.remove(from);
  give_leases();
}

std::optional<Crew::Step> ServerCrew::count(WorkerId from, const Pushed& message) {
  const auto found = leases_.find(message.lease);
  if (message.formation != formation_ || found == leases_.end() || found->second.worker != from) return std::nullopt;
  Given& given = found->second;
  Hand& hand = hands_.at(from);
  if (hand.lease != message.lease) return std::nullopt;  // says it twice
  hand.lease.reset();
  given.pushed = message;
  if (evaluation_ == message.lease) evaluation_.reset();
  if (given.range.count == 0) {
    Step look = update({message.lease});
    leases_.erase(found);
    give_leases();
    return look;
  }
  ++hand.updates;
  // Waiting for data counts as computing: a worker with slow storage should get fewer samples, too.
  if (message.compute_s > 0)
    hand.speed.add(static_cast<double>(given.range.count), message.compute_s + message.wait_s.value_or(0));
  if (!waits()) {
    to_commit_ = {message.lease};
    return update(to_commit_);
  }
  const bool all = open_.empty() && std::all_of(leases_.begin(), leases_.end(), [](const auto& entry) {
                     return entry.second.range.count == 0 || entry.second.pushed.has_value();
                   });
  if (!all) {
    give_leases();  // a part that another worker left behind
    return std::nullopt;
  }
  to_commit_.clear();
  for (const auto& [lease, one] : leases_) {
    if (one.range.count > 0) to_commit_.push_back(lease);
  }
  return update(to_commit_);
}

/// What these pushes are together.
Crew::Step ServerCrew::update(const std::vector<std::int64_t>& leases) const {
  Step step{.generation = generation_, .range = {sample_, 0}};
  double losses = 0;
  for (const std::int64_t lease : leases) {
    const Given& given = leases_.at(lease);
    const Pushed& pushed = *given.pushed;
    step.range.count += given.range.count;
    losses += pushed.loss * static_cast<double>(given.range.count);
    step.staleness += staleness(pushed) / static_cast<double>(leases.size());
    if (pushed.validation_loss) step.validation_loss = pushed.validation_loss;
    if (pushed.accuracy) step.accuracy = pushed.accuracy;
    step.parts.push_back({.worker = given.worker,
                          .first = given.range.first,
                          .samples = given.range.count,
                          .read = pushed.read,
                          .compute = Seconds(pushed.compute_s),
                          .exchange = Seconds(pushed.pull_s + pushed.push_s),
                          .wait = Seconds(pushed.wait_s.value_or(0))});
  }
  if (step.range.count > 0) step.loss = losses / static_cast<double>(step.range.count);
  return step;
}

double ServerCrew::staleness(const Pushed& pushed) const {
  return static_cast<double>(history_.end() - std::upper_bound(history_.begin(), history_.end(), pushed.sample));
}

void ServerCrew::commit() {
  MAYFLY_CHECK(!to_commit_.empty(), "only a finished update is committed");
  Commit word{.formation = formation_,
              .from = sample_,
              .sample = sample_,
              .leases = std::exchange(to_commit_, {}),
              .step = step_number(),
              .workers = std::max(1, static_cast<int>(members_.size()))};
  double losses = 0;
  for (const std::int64_t lease : word.leases) {
    const auto given = leases_.extract(lease);
    const bool kept = ledger_.commit(given.mapped().range);
    MAYFLY_CHECK(kept, "a lease that is out can be committed");
    word.sample += given.mapped().range.count;
    losses += given.mapped().pushed->loss * static_cast<double>(given.mapped().range.count);
  }
  loss_ = losses / static_cast<double>(word.sample - word.from);
  sample_ = word.sample;
  // Taken for told: a server that comes back without it is told again, from commits_.
  for (auto& [id, server] : servers_) {
    if (server.stands) server.sample = sample_;
  }
  send_servers(word);
  commits_.push_back(word);
  if (commits_.size() > kCommitsKept) commits_.pop_front();
  history_.push_back(sample_);
  if (history_.size() > kHistory) history_.pop_front();
}

void ServerCrew::go_on(std::int64_t end, bool evaluate) {
  end_ = end;
  evaluate_ = evaluate_ || evaluate;
  give_leases();
}

void ServerCrew::give_leases() {
  if (phase_ != Phase::training) return;
  if (parting_ && leases_.empty() && open_.empty()) return part();
  for (const WorkerId worker : idle()) {
    if (waits()) {
      // While parting, parts that were left behind are still given out: the step in hand is to count.
      if (open_.empty() && !parting_ && !mid_update() && all_attached()) plan_step();
      if (open_.empty()) break;
      const SampleRange part = open_.front();
      open_.pop_front();
      give(worker, part, static_cast<double>(part.count) / static_cast<double>(step_samples_));
      continue;
    }
    if (parting_ || !may_start(hands_.at(worker))) continue;
    const int batch = batch_of(worker);
    const SampleRange range = ledger_.lease(batch, end_);
    // By the job's batch, not by its own: every sample weighs the same, whichever worker computes it.
    if (range.count > 0) give(worker, range, static_cast<double>(range.count) / options_.batch);
  }
  if (!evaluate_ || parting_) return;
  // No lease has taken the look at the validation set along: a worker without samples gets it alone.
  const auto free = idle();
  if (!free.empty()) give(free.front(), {.first = sample_}, 0);
}

/// bsp: the next samples, in parts as the workers' speeds say; more parts than workers where samples left behind lie
/// apart.
void ServerCrew::plan_step() {
  step_samples_ = std::clamp<std::int64_t>(end_ - sample_, 0, options_.batch);
  std::vector<double> speeds;
  for (const WorkerId worker : idle()) speeds.push_back(hands_.at(worker).speed.value());
  for (std::int64_t count : shares(static_cast<int>(step_samples_), speeds)) {
    while (count > 0) {
      open_.push_back(ledger_.lease(count, end_));
      MAYFLY_CHECK(open_.back().count > 0, "what is not committed can be leased");
      count -= open_.back().count;
    }
  }
}

void ServerCrew::give(WorkerId worker, SampleRange range, double share) {
  const std::int64_t lease = ++last_lease_;
  leases_[lease] = {.worker = worker, .range = range};
  hands_.at(worker).lease = lease;
  Lease word{.formation = formation_,
             .lease = lease,
             .sample = sample_,
             .first_sample = range.first,
             .samples = range.count,
             .share = options_.sum ? 1 : share};
  if (std::exchange(evaluate_, false)) {
    word.evaluate = true;
    evaluation_ = lease;
  }
  send(worker, word);
}

/// Another worker gets it.
void ServerCrew::take_back(std::int64_t lease) {
  const auto found = leases_.extract(lease);
  if (found.empty()) return;
  const Given& given = found.mapped();
  if (const auto hand = hands_.find(given.worker); hand != hands_.end() && hand->second.lease == lease)
    hand->second.lease.reset();
  if (evaluation_ == lease) {
    evaluation_.reset();
    evaluate_ = true;
  }
  if (given.range.count == 0) return;
  send_servers(Forget{.formation = formation_, .leases = {lease}});
  // The step in hand is made of these very samples: its other parts may be staged already.
  if (waits()) {
    open_.push_back(given.range);
  } else {
    ledger_.give_back(given.range);
  }
}

void ServerCrew::forget_all() {
  for (auto& [worker, hand] : hands_) hand.lease.reset();
  if (evaluation_) evaluate_ = true;
  evaluation_.reset();
  std::vector<std::int64_t> all;
  for (const auto& [lease, given] : leases_) all.push_back(lease);
  if (!all.empty() && phase_ == Phase::training) send_servers(Forget{.formation = formation_, .leases = all});
  leases_.clear();
  open_.clear();
  to_commit_.clear();
  ledger_.give_back_all();
}

/// Those who have only to connect are waited for: a step without them would be slower.
bool ServerCrew::all_attached() const {
  return std::all_of(members_.begin(), members_.end(), [&](WorkerId worker) {
    const auto hand = hands_.find(worker);
    return hand == hands_.end() || hand->second.attached;
  });
}

/// bsp: parts of a step are out or staged.
bool ServerCrew::mid_update() const {
  return std::any_of(leases_.begin(), leases_.end(), [](const auto& entry) { return entry.second.range.count > 0; });
}

std::vector<WorkerId> ServerCrew::idle() const {
  std::vector<WorkerId> found;
  for (const WorkerId worker : members_) {
    const auto hand = hands_.find(worker);
    if (hand != hands_.end() && hand->second.attached && !hand->second.lease) found.push_back(worker);
  }
  return found;
}

/// Does not fall when the slowest goes or when none is attached: a newcomer that started below would hold back all that
/// come back after it.
std::int64_t ServerCrew::pace() {
  std::optional<std::int64_t> fewest;
  for (const WorkerId worker : members_) {
    const auto hand = hands_.find(worker);
    if (hand == hands_.end() || !hand->second.attached) continue;
    fewest = std::min(fewest.value_or(hand->second.updates), hand->second.updates);
  }
  return pace_ = std::max(pace_, fewest.value_or(pace_));
}

bool ServerCrew::may_start(const Hand& hand) {
  if (options_.servers.sync != ServersSpec::Sync::ssp) return true;
  return hand.updates - pace() <= options_.servers.bound;
}

int ServerCrew::batch_of(WorkerId worker) const {
  const auto found = batches_.find(worker);
  return found == batches_.end() ? options_.batch : found->second;
}

std::string ServerCrew::record() const {
  Json servers = Json::array();
  for (const auto& [id, server] : servers_) {
    servers.push_back({{"server", id}, {"address", server.address}, {"shard", server.shard.value_or(-1)}});
  }
  // As it will be when the step that was returned counts.
  Ledger after = ledger_;
  std::int64_t sample = sample_;
  for (const std::int64_t lease : to_commit_) {
    const SampleRange range = leases_.at(lease).range;
    after.commit(range);
    sample += range.count;
  }
  std::vector<std::string> ranges;
  for (const SampleRange& range : after.committed()) ranges.push_back(fmt::format("[{},{}]", range.first, range.count));
  std::vector<std::string> commits;
  for (const Commit& commit : commits_) commits.push_back(record_of(commit));
  if (!to_commit_.empty())
    commits.push_back(record_of({.formation = formation_,
                                 .from = sample_,
                                 .sample = sample,
                                 .leases = to_commit_,
                                 .step = step_number(),
                                 .workers = std::max(1, static_cast<int>(members_.size()))}));
  return fmt::format(R"({{"servers":{},"ledger":[{}],"commits":[{}]}})", servers.dump(), fmt::join(ranges, ","),
                     fmt::join(commits, ","));
}

void ServerCrew::restore(const std::string& record, std::int64_t committed) {
  sample_ = committed;
  const Json json = Json::parse(record.empty() ? "{}" : record, nullptr, false);
  if (!json.is_object()) return;
  for (const Json& one : json.value("servers", Json::array())) {
    Server server{.address = one.value("address", "")};
    if (const int shard = one.value("shard", -1); shard >= 0) server.shard = shard;
    // Not alive yet: it comes back and says what it holds, or is lost.
    servers_[one.value("server", 0)] = server;
  }
  std::vector<SampleRange> ranges;
  for (const Json& range : json.value("ledger", Json::array())) ranges.push_back({range[0], range[1]});
  auto ledger = Ledger::restored(std::move(ranges));
  // Written before a roll-back that the store knows of: no server holds what follows from it.
  if (!ledger || ledger->samples() != committed) return servers_.clear();
  ledger_ = *std::move(ledger);
  for (const Json& one : json.value("commits", Json::array())) {
    if (auto commit = commit_in(one)) commits_.push_back(*std::move(commit));
  }
}

}  // namespace mayfly
