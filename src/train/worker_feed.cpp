// Where a worker's samples come from.

#include "train/log.h"
#include "train/worker.h"
#include "wire/interface.h"

namespace mayfly {

Worker::~Worker() {
  if (peers_) peers_->serve(nullptr);
}

Result<PeerCaches*> Worker::open_peers() {
  const auto address = interface_address(gear_.options.interface);
  if (!address) return unexpected(address.error());
  auto peers = TcpPeerCaches::open(
      {.address = *address, .credentials = gear_.options.line.credentials, .network = gear_.emulated});
  if (!peers) return unexpected(peers.error());
  peers_ = std::move(*peers);
  return peers_.get();
}

Result<void> Worker::meet_neighbours(const Neighbours& neighbours) {
  const auto& feed = gear_.job.feed;
  if (!peers_ || !feed.partitioned) return {};
  peers_->set_neighbours(neighbours);
  feed.partitioned->set_members(gear_.terms.worker, neighbours.workers);
  log("caches of workers {}", fmt::join(neighbours.workers, ", "));
  return {};
}

}  // namespace mayfly
