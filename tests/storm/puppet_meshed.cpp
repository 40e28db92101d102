// A worker in a mesh.

#include <algorithm>
#include <numeric>
#include <utility>

#include "storm/puppet.h"

namespace mayfly::storm {
namespace {

std::int64_t total(const Proceed& lease) {
  return std::accumulate(lease.counts.begin(), lease.counts.end(), std::int64_t{0});
}

}  // namespace

void Puppet::form(const Form& form) {
  attached_to_.reset();
  leave_formation();
  form_ = form;
  const bool receives = std::find(form.receivers.begin(), form.receivers.end(), form.rank) != form.receivers.end();
  if (receives) pending_.reset();
  settle(form.sample);
  if (form.rank == form.source && (!weights_ || weights_->sample != form.sample)) {
    if (!form.from_checkpoint) {
      world_.account().require(false, "{} is to be the source of sample {}, and holds {}", name(), form.sample,
                               weights_ ? weights_->sample : -1);
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
                             "{} is to start from '{}' at {}, and there is no such checkpoint", name(), form.checkpoint,
                             form.sample);
  }
  world_.mesh(form.formation).ranks[form.rank] = this;
  later(world_.delay(), [this, formation = form.formation] {
    if (form_ && form_->formation == formation) say(Reachable{.formation = formation, .address = address_});
  });
}

void Puppet::meet(const Peers& peers) {
  World::Mesh& mesh = world_.mesh(peers.formation);
  const bool all = std::none_of(peers.addresses.begin(), peers.addresses.end(),
                                [](const std::string& address) { return address.empty(); });
  world_.account().require(all && peers.addresses.size() == static_cast<std::size_t>(form_->size),
                           "{} is told where to reach some of formation {}", name(), peers.formation);
  if (stands_ || mesh.here.contains(form_->rank)) return;
  if (mesh.broken) return break_formation("a peer is gone");
  if (const auto missing = world_.unreached(*this, peers.addresses); !missing.empty())
    return later(kUnreached, [this, formation = peers.formation, missing] {
      if (form_ && form_->formation == formation && !world_.mesh(formation).broken)
        break_formation("others do not answer", missing);
    });
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
    applied_in_ = pending_->done.formation;
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
  doing_ = "compute";
  if (hangs()) return;
  later(world_.work(), [this, formation = form_->formation, first = lease.committed] {
    if (form_ && form_->formation == formation && stands_) exchange(first);
  });
}

/// The sum is there when everyone has come to it.
void Puppet::exchange(std::int64_t first) {
  World::Mesh& mesh = world_.mesh(form_->formation);
  if (mesh.broken) return break_formation("a peer is gone");
  doing_ = "exchange";
  std::vector<std::string> addresses;
  for (const auto& entry : mesh.ranks) addresses.push_back(entry.second->address_);
  if (const auto missing = world_.unreached(*this, addresses); !missing.empty())
    return later(kUnreached, [this, formation = form_->formation, missing] {
      if (form_ && form_->formation == formation && stands_) break_formation("others do not answer", missing);
    });
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
  const auto own = lease.counts.begin() + form_->rank;
  StepDone done{.formation = form_->formation,
                .first_sample = lease.committed,
                .samples = total(lease),
                .read = world_.order().reading(std::accumulate(lease.counts.begin(), own, lease.committed), *own),
                .loss = 1,
                .compute_s = 0.02 + 0.01 * (launch_ % 3)};
  if (lease.compare) done.state = {fmt::format("weights {}", weights_->sample)};
  pending_ = Pending{.first = lease.committed, .samples = total(lease), .step = lease.step, .done = done};
  in_hand_.reset();
  doing_ = nullptr;
  say(done);
}

void Puppet::break_formation(const std::string& why, const std::vector<std::string>& unreached) {
  Broken broken{.formation = form_->formation, .what = why};
  if (!unreached.empty()) broken.unreached = unreached;
  leave_formation();
  say(std::move(broken));
}

/// Those in the middle of something with it notice; the others when they come to it.
void Puppet::leave_formation() {
  stands_ = false;
  doing_ = nullptr;
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

}  // namespace mayfly::storm
