#include "run/server_crew.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "run/whole_samples.h"

namespace mayfly {

void ServerCrew::server_ready(WorkerId server, const std::string& address) {
  servers_[server] = {.address = address, .alive = true};
  // For a standby, too: pushes in hand do not go to it. docs/decisions/0009-parameter-servers.md
  if (phase_ != Phase::idle) arrange();
}

void ServerCrew::arrived(WorkerId worker, const Held& held) {
  if (const auto found = servers_.find(worker); found != servers_.end()) {
    // What was said meanwhile is lost on one side or the other.
    found->second.alive = true;
    found->second.sample = held.sample;
    server_broken_ = server_broken_ || found->second.stands;
    return;
  }
  Hand& hand = hands_[worker];
  if (hand.lease) take_back(*hand.lease);
  hand = {.updates = hand.updates};
}

void ServerCrew::gone(WorkerId worker) {
  unreached_.remove(worker);
  if (const auto found = servers_.find(worker); found != servers_.end()) {
    const bool stood = found->second.stands;
    servers_.erase(found);
    if (stood && phase_ != Phase::idle) arrange();
    return;
  }
  const auto found = hands_.find(worker);
  if (found == hands_.end()) return;
  // What it has pushed is at the servers and counts all the same.
  if (found->second.lease) take_back(*found->second.lease);
  hands_.erase(found);
  batches_.erase(worker);
  give_leases();
}

bool ServerCrew::stands(WorkerId worker) const {
  if (const auto found = servers_.find(worker); found != servers_.end()) return found->second.stands;
  // A worker that is to go finishes what it has in hand.
  const auto hand = hands_.find(worker);
  if (hand != hands_.end() && hand->second.lease) return true;
  return std::find(members_.begin(), members_.end(), worker) != members_.end();
}

bool ServerCrew::alive(WorkerId worker) const {
  const auto found = servers_.find(worker);
  return found != servers_.end() ? found->second.alive : hands_.contains(worker);
}

std::int64_t ServerCrew::place_of(WorkerId worker) const {
  const auto hand = hands_.find(worker);
  const auto given = hand != hands_.end() && hand->second.lease ? leases_.find(*hand->second.lease) : leases_.end();
  return given == leases_.end() ? sample_ : given->second.range.first;
}

std::vector<WorkerId> ServerCrew::servers() const {
  std::vector<WorkerId> ids;
  for (const auto& [id, server] : servers_) ids.push_back(id);
  return ids;
}

/// Holds its shard as it was committed, or will once it has heard of commits that it missed.
bool ServerCrew::holds(const Server& server) const {
  if (!server.alive || !server.sample || !server.shard || checkpoint_) return false;
  if (server.sample == sample_) return true;
  return std::any_of(commits_.begin(), commits_.end(), [&](const Commit& c) { return c.from == *server.sample; });
}

bool ServerCrew::all_shards_held() const {
  for (int shard = 0; shard < options_.servers.count; ++shard) {
    const bool held = std::any_of(servers_.begin(), servers_.end(), [&](const auto& entry) {
      return entry.second.shard == shard && holds(entry.second);
    });
    if (!held) return false;
  }
  return true;
}

/// A server that stays holds the same.
bool ServerCrew::has_heir(const Server& server) const {
  return std::any_of(servers_.begin(), servers_.end(), [&](const auto& entry) {
    return !entry.second.leaving && entry.second.shard == server.shard && holds(entry.second);
  });
}

bool ServerCrew::somebody_can_go() const {
  return std::any_of(servers_.begin(), servers_.end(), [&](const auto& entry) {
    return entry.second.leaving && entry.second.stands && has_heir(entry.second);
  });
}

std::vector<WorkerId> ServerCrew::last_holders() const {
  std::vector<WorkerId> found;
  for (const auto& [id, server] : servers_) {
    if (server.leaving && server.stands && !has_heir(server)) found.push_back(id);
  }
  return found;
}

void ServerCrew::server_leaves(WorkerId server) {
  const auto found = servers_.find(server);
  if (found == servers_.end()) return;
  found->second.leaving = true;
  if (phase_ != Phase::training || !somebody_can_go()) return;
  // A new formation now would throw away what workers have in hand: it is let count first.
  parting_ = true;
  give_leases();
}

void ServerCrew::part() {
  if (somebody_can_go()) arrange();
}

bool ServerCrew::stateless() const {
  return phase_ != Phase::idle && sample_ > 0 && !checkpoint_ && !all_shards_held();
}

bool ServerCrew::assign(const Assign& command) {
  generation_ = command.generation;
  members_ = command.members;
  sample_ = whole_samples(command.next_sample);
  for (auto& [worker, hand] : hands_) {
    if (!stands(worker)) hand.attached = false;
  }
  if (phase_ == Phase::idle || phase_ == Phase::waiting) return arrange();
  // Servers that stand go on: workers come and go within a formation.
  if (stateless()) return false;
  if (phase_ == Phase::training) {
    for (const WorkerId worker : members_) attach(worker);
  }
  return true;
}

bool ServerCrew::form_again() {
  if (server_broken_ || phase_ != Phase::training) return arrange();
  // Only some workers are broken: the others stay attached, and keep what they have in hand.
  broken_ = false;
  for (const WorkerId worker : members_) attach(worker);
  return true;
}

void ServerCrew::roll_back(const std::string& checkpoint, std::int64_t sample, Ledger ledger) {
  sample_ = sample;
  ledger_ = std::move(ledger);
  checkpoint_ = checkpoint;
  commits_.clear();
  // Updates that are taken back make no push stale.
  while (!history_.empty() && history_.back() > sample) history_.pop_back();
  arrange();
}

void ServerCrew::pause() {
  // Servers stay in formation, so that the next assignment can go on at once.
  forget_all();
  for (const WorkerId worker : members_) {
    send(worker, Halt{formation_});
    if (const auto found = hands_.find(worker); found != hands_.end()) found->second.attached = false;
  }
  members_.clear();
}

/// A new formation of the servers that are there. False where they are enough, but none of them holds what was
/// committed.
bool ServerCrew::arrange() {
  forget_all();
  unreached_.clear();
  server_broken_ = false;
  broken_ = false;
  parting_ = false;
  phase_ = Phase::waiting;
  for (auto& [worker, hand] : hands_) hand.attached = false;
  // Before the first update nothing is lost: every server can make the first weights.
  if (sample_ == 0 && !checkpoint_ && !all_shards_held()) checkpoint_ = "";
  if (!checkpoint_ && !all_shards_held()) return false;
  if (place_servers()) serve();
  return true;
}

/// Servers that hold a shard keep it; the others fill the gaps. One that is to go stands only where no other holds its
/// shard so far. False where a shard is left without a server.
bool ServerCrew::place_servers() {
  const int shards = options_.servers.count;
  std::vector<int> held(static_cast<std::size_t>(shards), 0);
  const auto hand = [&](Server& server, int shard) {
    server.shard = shard;
    server.stands = true;
    ++held[static_cast<std::size_t>(shard)];
  };
  for (auto& [id, server] : servers_) {
    server.stands = false;
    server.formed = false;
  }
  for (auto& [id, server] : servers_) {
    if (holds(server) && !server.leaving) hand(server, *server.shard);
  }
  for (auto& [id, server] : servers_) {
    if (server.stands || !server.alive || server.leaving) continue;
    // Every shard has a server before any has a standby.
    const auto fewest = std::min_element(held.begin(), held.end());
    if (*fewest <= options_.servers.standby) hand(server, static_cast<int>(fewest - held.begin()));
  }
  for (auto& [id, server] : servers_) {
    if (server.leaving && holds(server) && !has_heir(server)) hand(server, *server.shard);
  }
  return std::all_of(held.begin(), held.end(), [](int servers) { return servers > 0; });
}

void ServerCrew::serve() {
  // Workers stop what they do for the last formation.
  for (const auto& [worker, hand] : hands_) send(worker, Halt{formation_});
  ++formation_;
  phase_ = Phase::gathering;
  // The others keep their copies for the formation that ends here: the writer may not get them any more.
  if (writer_) save_wanted_ = true;
  writer_.reset();
  for (auto& [id, server] : servers_) {
    if (!server.stands) continue;
    const bool has = holds(server);
    // Before Serve, with which a server forgets the staged pushes that these commits are of.
    if (has) catch_up(id, server);
    Serve word{.formation = formation_, .shard = *server.shard, .shards = options_.servers.count, .sample = sample_};
    if (checkpoint_) {
      word.from_checkpoint = true;
      word.checkpoint = *checkpoint_;
    } else if (!has) {
      // One that stands: who does not is told nothing of this formation, and would hand nothing over in it.
      const auto source = std::find_if(servers_.begin(), servers_.end(), [&](const auto& entry) {
        return entry.second.stands && entry.second.shard == server.shard && holds(entry.second);
      });
      MAYFLY_CHECK(source != servers_.end(), "a shard that is not loaded from a checkpoint has a server that holds it");
      word.source = source->second.address;
    }
    if (!has) server.sample.reset();  // until it says so
    send(id, word);
  }
}

void ServerCrew::catch_up(WorkerId id, Server& server) {
  for (const Commit& commit : commits_) {
    if (commit.from != *server.sample) continue;
    send(id, commit);
    server.sample = commit.sample;
  }
}

void ServerCrew::server_formed(WorkerId id, const Formed& message) {
  Server& server = servers_.at(id);
  if (message.formation != formation_ || phase_ != Phase::gathering || !server.stands) return;
  server.formed = true;
  if (!awaited().empty()) return;
  for (auto& [other, one] : servers_) {
    if (one.stands) one.sample = sample_;
  }
  // All servers are at this state: no older commit can have been missed.
  checkpoint_.reset();
  commits_.clear();
  phase_ = Phase::training;
  // Who has handed its shard over in this formation is not in the next.
  if (somebody_can_go()) return part();
  for (const WorkerId worker : members_) attach(worker);
  if (save_wanted_) write_checkpoint();
}

void ServerCrew::attach(WorkerId worker) {
  const auto found = hands_.find(worker);
  if (found == hands_.end() || found->second.attached) return;
  Attach word{.formation = formation_, .shards = options_.servers.count};
  // Whole rounds of shards; a shard that has fewer servers than another is named again.
  std::vector<std::vector<std::string>> rows(static_cast<std::size_t>(options_.servers.count));
  for (const auto& [id, server] : servers_) {
    if (server.stands) rows[static_cast<std::size_t>(*server.shard)].push_back(server.address);
  }
  std::size_t rounds = 0;
  for (const auto& row : rows) rounds = std::max(rounds, row.size());
  for (std::size_t round = 0; round < rounds; ++round) {
    for (const auto& row : rows) word.addresses.push_back(round < row.size() ? row[round] : "");
  }
  send(worker, word);
}

std::vector<Letter> ServerCrew::letters() { return std::exchange(letters_, {}); }

void ServerCrew::send_servers(const ToMember& message) {
  for (const auto& [id, server] : servers_) {
    if (server.stands) send(id, message);
  }
}

std::vector<WorkerId> ServerCrew::awaited() const {
  std::vector<WorkerId> missing;
  for (const auto& [id, server] : servers_) {
    if (phase_ == Phase::gathering && server.stands && !server.formed) missing.push_back(id);
  }
  return missing;
}

bool ServerCrew::write_checkpoint() {
  // One at a time: a server keeps one copy for it, and the next would replace that.
  save_wanted_ = phase_ != Phase::training || writer_;
  if (save_wanted_) return false;
  std::vector<WorkerId> savers(static_cast<std::size_t>(options_.servers.count), -1);
  std::vector<std::string> addresses(savers.size());
  for (const auto& [id, server] : servers_) {
    if (!server.stands || savers[static_cast<std::size_t>(*server.shard)] >= 0) continue;
    savers[static_cast<std::size_t>(*server.shard)] = id;
    addresses[static_cast<std::size_t>(*server.shard)] = server.address;
  }
  Save word{.formation = formation_, .sample = sample_, .step = step_number(), .loss = loss_};
  for (const SampleRange& range : ledger_.committed())
    word.ledger.insert(word.ledger.end(), {range.first, range.count});
  writer_ = savers[0];
  // Each server reads this behind the same commits, so the copies are of one state.
  for (const WorkerId saver : savers) {
    word.addresses = saver == writer_ ? addresses : std::vector<std::string>{};
    send(saver, word);
  }
  return true;
}

}  // namespace mayfly
