// A worker with servers.

#include "storm/puppet.h"

namespace mayfly::storm {

void Puppet::attach(const Attach& attach) {
  leave_formation();
  form_.reset();
  pending_.reset();
  weights_.reset();
  attached_to_ = attach;
  done_.reset();
  later(world_.delay(), [this, attach] {
    if (!attached_to_ || attached_to_->formation != attach.formation) return;
    if (lacks_servers(attach.addresses)) return;
    for (const std::string& address : attach.addresses) {
      const Puppet* server = world_.at_address(address);
      if (!address.empty() && (server == nullptr || !server->serve_ || server->serve_->formation != attach.formation))
        return break_served(attach.formation, "a server is gone");
    }
    say(Formed{.formation = attach.formation});
  });
}

/// It will be said which do not answer.
bool Puppet::lacks_servers(const std::vector<std::string>& addresses) {
  const auto missing = world_.unreached(*this, addresses);
  if (missing.empty()) return false;
  later(kUnreached, [this, formation = attached_to_->formation, missing] {
    if (attached_to_ && attached_to_->formation == formation) break_served(formation, "it does not answer", missing);
  });
  return true;
}

void Puppet::break_served(std::int64_t formation, const std::string& why, const std::vector<std::string>& unreached) {
  attached_to_.reset();
  done_.reset();
  doing_ = nullptr;
  Broken broken{.formation = formation, .what = why};
  if (!unreached.empty()) broken.unreached = unreached;
  say(std::move(broken));
}

void Puppet::take(const Lease& lease) {
  if (done_ && done_->formation == lease.formation && done_->lease == lease.lease) return say(*done_);
  doing_ = "compute";
  if (lease.samples > 0 && hangs()) return;
  later(world_.work(), [this, lease] {
    if (!attached_to_ || attached_to_->formation != lease.formation) return;
    doing_ = "exchange";
    if (!lacks_servers(attached_to_->addresses)) push(lease, 0);
  });
}

/// Server after server: whoever is lost on the way has told some of them and not others.
void Puppet::push(const Lease& lease, std::size_t next) {
  if (!attached_to_ || attached_to_->formation != lease.formation) return;
  const auto& addresses = attached_to_->addresses;
  while (next < addresses.size() && addresses[next].empty()) ++next;
  if (next == addresses.size()) {
    done_ = Pushed{.formation = lease.formation,
                   .lease = lease.lease,
                   .sample = lease.sample,
                   .read = world_.order().reading(lease.first_sample, lease.samples),
                   .loss = 1,
                   .compute_s = 0.02};
    doing_ = nullptr;
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

}  // namespace mayfly::storm
