#include "storm/puppet.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/overloaded.h"

namespace mayfly::storm {
namespace {

constexpr Seconds kRetry{0.2};
constexpr Seconds kLook{0.1};
constexpr int kTries = 200;

template <class... Kinds>
bool is_one_of(const FromMember& message) {
  return (std::holds_alternative<Kinds>(message) || ...);
}

std::int64_t total(const Proceed& lease) {
  return std::accumulate(lease.counts.begin(), lease.counts.end(), std::int64_t{0});
}

}  // namespace

std::string Puppet::name() const {
  return fmt::format("{}{} of launch {}", server_ ? "s" : "w", id_.value_or(0), launch_);
}

void Puppet::later(Seconds time, std::function<void()> what) {
  world_.agenda().after(time, [this, what = std::move(what)] {
    if (!alive_) return;
    if (const Seconds rest = frozen_until_ - world_.agenda().now(); rest.count() > 0) return later(rest, what);
    what();
  });
}

void Puppet::boot() {
  later(Seconds(world_.rng().exponential(0.3)), [this] {
    weights_ = server_ ? std::nullopt : std::optional(Weights{});
    attempt();
  });
}

void Puppet::exit(const char* how) {
  if (!alive_) return;
  leave_formation();
  alive_ = false;
  world_.exited(*this, how);
}

void Puppet::die() { exit("killed"); }

void Puppet::notice(Seconds left) {
  if (!alive_) return;
  if (!leaves_) leaves_ = world_.agenda().now() + left;
  if (attached_) say(Leaving{.left_s = left.count()}, false);
}

void Puppet::freeze(Seconds length) { frozen_until_ = std::max(frozen_until_, world_.agenda().now() + length); }

// The line.

void Puppet::attempt() {
  if (connection_) return;
  connection_ = world_.connect(*this);
  if (!connection_) return lost_line();
  Hello hello{.pid = launch_ + 1, .role = server_ ? "server" : "worker", .launch = launch_};
  if (id_) {
    hello.worker = *id_;
    if (weights_) hello.sample = weights_->sample;
    const auto* done = unanswered_ ? std::get_if<StepDone>(&*unanswered_) : nullptr;
    if (done != nullptr && done->samples > 0) {
      hello.pending = done->first_sample + done->samples;
      hello.formation = done->formation;
    }
  }
  world_.say(*connection_, hello);
}

void Puppet::lost_line() {
  connection_.reset();
  attached_ = false;
  if (!alone_since_) alone_since_ = world_.agenda().now();
  if (world_.agenda().now() - *alone_since_ > world_.inputs().times.orphan)
    return later(Seconds(0), [this] { orphaned(); });
  later(kRetry, [this] { attempt(); });
}

/// Nobody is there to ask: what it holds is saved, and it ends.
void Puppet::orphaned() {
  const Saved* newest = world_.newest();
  if (!server_ && weights_ && weights_->sample > 0 && form_ &&
      (newest == nullptr || newest->weights.sample < weights_->sample))
    world_.save(fmt::format("checkpoint-{}", weights_->sample), *weights_, weights_->ranges());
  exit("orphaned");
}

void Puppet::say(FromMember message, bool answer) {
  if (answer && is_one_of<Ready, Reachable, Formed, StepDone, Pushed, Broken>(message)) unanswered_ = message;
  if (is_one_of<CheckpointWritten>(message)) checkpoint_ = message;
  if (attached_ && connection_) world_.say(*connection_, message);
}

void Puppet::heartbeat() {
  later(world_.inputs().times.heartbeat, [this] {
    if (attached_ && connection_) world_.say(*connection_, Alive{});
    heartbeat();
  });
}

void Puppet::hear(ToMember message) {
  later(Seconds(0), [this, message = std::move(message)] { obey(message); });
}

void Puppet::welcome(const Welcome& welcome) {
  const bool again = id_ == welcome.worker;
  attached_ = true;
  alone_since_.reset();
  if (!std::exchange(beating_, true)) heartbeat();
  id_ = welcome.worker;
  if (leaves_) say(Leaving{.left_s = std::max(0.0, (*leaves_ - world_.agenda().now()).count())}, false);
  if (again) {
    if (checkpoint_) say(*checkpoint_);
    if (unanswered_) say(*unanswered_);
    return;
  }
  unanswered_.reset();
  checkpoint_.reset();
  const Seconds load = loaded_ ? Seconds(0) : Seconds(world_.rng().exponential(0.5));
  later(load, [this, worker = welcome.worker] {
    if (id_ != worker) return;
    loaded_ = true;
    say(Ready{.samples = world_.epoch(), .parameters = 1, .state_mb = 0.1, .address = server_ ? address_ : ""});
  });
}

void Puppet::refused() {
  connection_.reset();
  attached_ = false;
  if (!id_) return exit("refused");
  // Whatever it holds counts for nothing.
  id_.reset();
  unanswered_.reset();
  checkpoint_.reset();
  leave_formation();
  form_.reset();
  pending_.reset();
  attached_to_.reset();
  done_.reset();
  serve_.reset();
  serving_ = false;
  staged_.clear();
  copy_.reset();
  weights_ = server_ ? std::nullopt : std::optional(Weights{});
  attempt();
}

void Puppet::obey(const ToMember& message) {
  // What answers its last word, and needs a job that is loaded.
  const auto answers = [&](auto&& act) {
    unanswered_.reset();
    if (loaded_) act();
  };
  const auto current = [&](std::int64_t formation) { return form_ && form_->formation == formation; };
  const auto serves = [&](std::int64_t formation) { return loaded_ && serving_ && serve_->formation == formation; };
  std::visit(Overloaded{
                 [&](const Welcome& word) { welcome(word); },
                 [&](const Refused&) { refused(); },
                 [&](const Leave&) { exit("left"); },
                 [&](const Form& word) { answers([&] { form(word); }); },
                 [&](const Peers& word) {
                   answers([&] {
                     if (current(word.formation)) meet(word);
                   });
                 },
                 [&](const Proceed& word) {
                   answers([&] {
                     if (current(word.formation)) proceed(word);
                   });
                 },
                 [&](const WriteCheckpoint& word) {
                   if (loaded_ && current(word.formation)) write_checkpoint();
                 },
                 [&](const Attach& word) { answers([&] { attach(word); }); },
                 [&](const Lease& word) {
                   answers([&] {
                     if (attached_to_ && attached_to_->formation == word.formation) take(word);
                   });
                 },
                 [&](const Serve& word) { answers([&] { serve(word); }); },
                 [&](const Commit& word) {
                   answers([&] {
                     if (serves(word.formation)) commit(word);
                   });
                 },
                 [&](const Forget& word) {
                   if (serves(word.formation)) forget(word);
                 },
                 [&](const Save& word) {
                   if (serves(word.formation)) save(word);
                 },
                 [&](const Halt& word) { answers([&] { halt(word); }); },
                 Ignoring<void, Alive, Neighbours, Measure, Watch>{},
             },
             message);
}

void Puppet::halt(const Halt& halt) {
  if (form_ && form_->formation <= halt.formation) leave_formation();
  if (attached_to_ && attached_to_->formation <= halt.formation) attached_to_.reset();
}

// In a mesh.

void Puppet::form(const Form& form) {
  attached_to_.reset();
  leave_formation();
  form_ = form;
  const bool receives = std::find(form.receivers.begin(), form.receivers.end(), form.rank) != form.receivers.end();
  if (receives) pending_.reset();
  settle(form.sample);
  if (form.rank == form.source && (!weights_ || weights_->sample != form.sample)) {
    if (!form.from_checkpoint) {
      world_.account().require(false, fmt::format("{} is to be the source of sample {}, and holds {}", name(),
                                                  form.sample, weights_ ? weights_->sample : -1));
      return;
    }
    const Saved* saved = world_.checkpoint(form.checkpoint);
    weights_.reset();
    if (form.checkpoint.empty()) {
      weights_ = Weights{};
    } else if (saved != nullptr) {
      weights_ = saved->weights;
    }
    if (!weights_ && form.formation < world_.account().formation()) return say(Unable{"too late: it is gone"});
    world_.account().require(weights_ && weights_->sample == form.sample,
                             fmt::format("{} is to start from '{}' at {}, and there is no such checkpoint", name(),
                                         form.checkpoint, form.sample));
  }
  world_.mesh(form.formation).ranks[form.rank] = this;
  later(world_.delay(), [this, formation = form.formation] {
    if (form_ && form_->formation == formation) say(Reachable{.formation = formation, .address = "here"});
  });
}

void Puppet::meet(const Peers& peers) {
  World::Mesh& mesh = world_.mesh(peers.formation);
  if (stands_ || mesh.here.contains(form_->rank)) return;
  if (mesh.broken) return break_formation("a peer is gone");
  mesh.here.insert(form_->rank);
  if (mesh.here.size() == static_cast<std::size_t>(form_->size)) hand_over();
}

/// Everyone is connected: the source's state goes to those who lack it.
void Puppet::hand_over() {
  World::Mesh& mesh = world_.mesh(form_->formation);
  Puppet& source = *mesh.ranks.at(form_->source);
  const auto receivers = form_->receivers;
  for (const auto& entry : mesh.ranks) {
    Puppet* const peer = entry.second;
    const int rank = entry.first;
    const bool receives =
        rank != form_->source && std::find(receivers.begin(), receivers.end(), rank) != receivers.end();
    if (receives) {
      peer->weights_ = source.weights_;
    } else if (!peer->weights_ || peer->weights_->sample != form_->sample) {
      // As the real one: the mesh cannot stand.
      return peer->break_formation("holds another state");
    } else {
      world_.account().compared(fmt::format("{} and {}", source.name(), peer->name()), *source.weights_,
                                *peer->weights_);
    }
  }
  for (const auto& entry : mesh.ranks) {
    Puppet* const peer = entry.second;
    peer->later(world_.delay(), [peer, formation = form_->formation] {
      if (peer->form_ && peer->form_->formation == formation && !peer->world_.mesh(formation).broken) peer->formed();
    });
  }
}

void Puppet::formed() {
  stands_ = true;
  say(Formed{.formation = form_->formation});
}

void Puppet::settle(std::int64_t committed) {
  if (!pending_) return;
  if (weights_ && pending_->end() == committed && pending_->first == weights_->sample && pending_->samples > 0) {
    weights_->apply(pending_->first, pending_->samples);
    world_.account().applied(name(), *weights_, pending_->done.formation);
  }
  pending_.reset();
}

void Puppet::proceed(const Proceed& lease) {
  if (!stands_) return;
  if (pending_ && pending_->first == lease.committed && pending_->step == lease.step &&
      pending_->samples == total(lease))
    return say(pending_->done);
  if (in_hand_ && in_hand_->committed == lease.committed && in_hand_->counts == lease.counts) return;  // at it already
  settle(lease.committed);
  if (!weights_ || weights_->sample != lease.committed) return break_formation("told to go on from another sample");
  if (lease.counts.empty()) return;
  in_hand_ = lease;
  later(Seconds(0.02 + world_.rng().exponential(0.05)), [this, formation = form_->formation, first = lease.committed] {
    if (form_ && form_->formation == formation && stands_) exchange(first);
  });
}

/// The sum is there when everyone has come to it.
void Puppet::exchange(std::int64_t first) {
  World::Mesh& mesh = world_.mesh(form_->formation);
  if (mesh.broken) return break_formation("a peer is gone");
  auto& there = mesh.exchanging[first];
  there.insert(form_->rank);
  if (there.size() < static_cast<std::size_t>(form_->size)) return;
  for (const auto& entry : mesh.ranks) {
    Puppet* const peer = entry.second;
    peer->later(world_.delay(), [peer, formation = form_->formation, first] {
      const bool still =
          peer->form_ && peer->form_->formation == formation && peer->in_hand_ && peer->in_hand_->committed == first;
      if (still) peer->exchanged(*peer->in_hand_);
    });
  }
}

void Puppet::exchanged(const Proceed& lease) {
  const StepDone done{.formation = form_->formation,
                      .first_sample = lease.committed,
                      .samples = total(lease),
                      .loss = 1,
                      .compute_s = 0.02 + 0.01 * (launch_ % 3)};
  pending_ = Pending{.first = lease.committed, .samples = total(lease), .step = lease.step, .done = done};
  in_hand_.reset();
  say(done);
}

void Puppet::break_formation(const std::string& why) {
  const std::int64_t formation = form_->formation;
  leave_formation();
  say(Broken{.formation = formation, .what = why});
}

/// Those in the middle of something with it notice; the others when they come to it.
void Puppet::leave_formation() {
  stands_ = false;
  in_hand_.reset();
  if (!form_) return;
  World::Mesh& mesh = world_.mesh(form_->formation);
  if (!mesh.ranks.contains(form_->rank) || mesh.ranks.at(form_->rank) != this) return;
  if (std::exchange(mesh.broken, true)) return;
  for (const auto& entry : mesh.ranks) {
    Puppet* const peer = entry.second;
    if (peer == this) continue;
    peer->later(world_.delay(), [peer, formation = form_->formation] {
      const bool there = peer->form_ && peer->form_->formation == formation;
      const bool middle = there && (peer->in_hand_ ||
                                    (!peer->stands_ && peer->world_.mesh(formation).here.contains(peer->form_->rank)));
      if (middle) peer->break_formation("a peer is gone");
    });
  }
}

void Puppet::write_checkpoint() {
  if (!weights_) return say(CheckpointFailed{.what = "holds no state"});
  later(Seconds(world_.rng().exponential(0.2)), [this, weights = *weights_] {
    const std::string path = fmt::format("checkpoint-{}", weights.sample);
    if (!world_.save(path, weights, weights.ranges()))
      return say(CheckpointFailed{.sample = weights.sample, .what = "full"});
    say(CheckpointWritten{.sample = weights.sample, .path = path, .size_mb = 0.1, .stall_s = 0.001, .write_s = 0.2});
  });
}

// With servers.

void Puppet::attach(const Attach& attach) {
  leave_formation();
  form_.reset();
  pending_.reset();
  weights_.reset();
  attached_to_ = attach;
  done_.reset();
  later(world_.delay(), [this, attach] {
    if (!attached_to_ || attached_to_->formation != attach.formation) return;
    for (const std::string& address : attach.addresses) {
      const Puppet* server = world_.at_address(address);
      if (!address.empty() && (server == nullptr || !server->serve_ || server->serve_->formation != attach.formation))
        return break_served(attach.formation, "a server is gone");
    }
    say(Formed{.formation = attach.formation});
  });
}

void Puppet::break_served(std::int64_t formation, const std::string& why) {
  attached_to_.reset();
  done_.reset();
  say(Broken{.formation = formation, .what = why});
}

void Puppet::take(const Lease& lease) {
  if (done_ && done_->formation == lease.formation && done_->lease == lease.lease) return say(*done_);
  later(Seconds(0.02 + world_.rng().exponential(0.05)), [this, lease] { push(lease, 0); });
}

/// Server after server: whoever is lost on the way has told some of them and not others.
void Puppet::push(const Lease& lease, std::size_t next) {
  if (!attached_to_ || attached_to_->formation != lease.formation) return;
  const auto& addresses = attached_to_->addresses;
  while (next < addresses.size() && addresses[next].empty()) ++next;
  if (next == addresses.size()) {
    done_ = Pushed{
        .formation = lease.formation, .lease = lease.lease, .sample = lease.sample, .loss = 1, .compute_s = 0.02};
    return say(*done_);
  }
  Puppet* server = world_.at_address(addresses[next]);
  if (server == nullptr || !server->serve_ || server->serve_->formation != lease.formation)
    return break_served(lease.formation, "a server is gone");
  if (!server->serving_ || (server->weights_ && server->weights_->sample < lease.sample))
    return later(kLook, [this, lease, next] { push(lease, next); });  // waits for the state it was told of
  if (server->unwanted_.erase(lease.lease) == 0 && lease.samples > 0)
    server->staged_[lease.lease] = {lease.first_sample, lease.samples};
  later(world_.delay(), [this, lease, next] { push(lease, next + 1); });
}

// As a server.

void Puppet::serve(const Serve& serve) {
  if (serving_ && serve_->formation == serve.formation) return say(Formed{.formation = serve.formation});
  const bool same = serve_ && serve_->shard == serve.shard && serve_->shards == serve.shards;
  serving_ = false;
  serve_ = serve;
  staged_.clear();
  unwanted_.clear();
  if (same && weights_ && weights_->sample == serve.sample) return stand(serve);
  weights_.reset();
  take_state(serve, kTries);
}

void Puppet::take_state(const Serve& serve, int tries) {
  if (!serve_ || serve_->formation != serve.formation || serving_) return;
  if (!serve.source.empty()) {
    const Puppet* source = world_.at_address(serve.source);
    if (source == nullptr || tries == 0) return break_serving("its source is gone");
    const bool there = source->serving_ && source->serve_->formation == serve.formation;
    if (!there) return later(kLook, [this, serve, tries] { take_state(serve, tries - 1); });
    world_.account().require(
        source->weights_ && source->weights_->sample == serve.sample && source->serve_->shard == serve.shard,
        fmt::format("{} is to fetch sample {} where it is not", name(), serve.sample));
    weights_ = source->weights_;
    return stand(serve);
  }
  if (!serve.from_checkpoint) return break_serving("told to go on from a sample that it does not hold");
  const Saved* saved = world_.checkpoint(serve.checkpoint);
  if (serve.checkpoint.empty()) {
    weights_ = Weights{};
  } else if (saved != nullptr) {
    weights_ = saved->weights;
  }
  if (!weights_ && serve.formation < world_.account().formation()) return say(Unable{"too late: it is gone"});
  world_.account().require(weights_ && weights_->sample == serve.sample,
                           fmt::format("{} is to start from '{}' at {}, and there is no such checkpoint", name(),
                                       serve.checkpoint, serve.sample));
  stand(serve);
}

void Puppet::stand(const Serve& serve) {
  later(world_.delay(), [this, serve] {
    if (!serve_ || serve_->formation != serve.formation) return;
    serving_ = true;
    say(Formed{.formation = serve.formation});
  });
}

void Puppet::commit(const Commit& commit) {
  if (!weights_ || commit.sample <= weights_->sample) return;
  for (const std::int64_t lease : commit.leases) {
    if (!staged_.contains(lease)) return break_serving("a lease is not staged");
  }
  world_.account().require(commit.from == weights_->sample,
                           fmt::format("{} holds {} and is told to go from {}", name(), weights_->sample, commit.from));
  for (const std::int64_t lease : commit.leases) {
    const SampleRange range = staged_.extract(lease).mapped();
    weights_->apply(range.first, range.count);
  }
  world_.account().applied(name(), *weights_, commit.formation);
  world_.account().require(weights_->sample == commit.sample,
                           fmt::format("{} comes to {} and not to {}", name(), weights_->sample, commit.sample));
}

void Puppet::forget(const Forget& forget) {
  for (const std::int64_t lease : forget.leases) {
    if (staged_.erase(lease) == 0) unwanted_.insert(lease);
  }
}

void Puppet::save(const Save& save) {
  const bool writes = !save.addresses.empty();
  if (!weights_ || weights_->sample != save.sample) {
    if (writes) say(CheckpointFailed{.sample = save.sample, .what = "holds another state"});
    return;
  }
  copy_ = weights_;
  if (writes) later(Seconds(world_.rng().exponential(0.2)), [this, save] { gather(save); });
}

void Puppet::gather(const Save& save) {
  for (const std::string& address : save.addresses) {
    const Puppet* other = address == address_ ? this : world_.at_address(address);
    if (other == nullptr || !other->copy_ || other->copy_->sample != save.sample)
      return say(CheckpointFailed{.sample = save.sample, .what = "a server is gone"});
    world_.account().compared(fmt::format("the shards of {} and {}", name(), other->name()), *copy_, *other->copy_);
  }
  std::vector<SampleRange> ledger;
  for (std::size_t i = 0; i + 1 < save.ledger.size(); i += 2) ledger.push_back({save.ledger[i], save.ledger[i + 1]});
  const std::string path = fmt::format("checkpoint-{}", save.sample);
  if (!world_.save(path, *copy_, ledger)) return say(CheckpointFailed{.sample = save.sample, .what = "full"});
  say(CheckpointWritten{.sample = save.sample, .path = path, .size_mb = 0.1, .stall_s = 0.001, .write_s = 0.2});
}

void Puppet::break_serving(const std::string& why) { say(Broken{.formation = serve_->formation, .what = why}); }

}  // namespace mayfly::storm
