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
  later(world_.work(), [this, lease] { push(lease, 0); });
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

}  // namespace mayfly::storm
