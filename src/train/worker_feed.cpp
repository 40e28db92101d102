// Where a worker's samples come from.

#include "train/log.h"
#include "train/worker.h"
#include "wire/interface.h"

namespace mayfly {

Worker::~Worker() {
  if (peers_) peers_->serve(nullptr);
}

Result<PeerCaches*> Worker::open_peers() {
  const auto address = interface_address(options_.interface);
  if (!address) return unexpected(address.error());
  auto peers =
      TcpPeerCaches::open({.address = *address, .credentials = options_.line.credentials, .network = emulated_});
  if (!peers) return unexpected(peers.error());
  peers_ = std::move(*peers);
  return peers_.get();
}

void Worker::meet_neighbours(const Neighbours& neighbours) {
  if (!peers_ || !job_.feed.partitioned) return;
  peers_->set_neighbours(neighbours);
  job_.feed.partitioned->set_members(terms_.worker, neighbours.workers);
  log("caches of workers {}", fmt::join(neighbours.workers, ", "));
}

void Worker::report_feed(bool last) {
  constexpr Seconds kReportEvery{1};
  const auto now = std::chrono::steady_clock::now();
  if (!job_.trainer || !job_.feed.loader || (!last && now < reported_ + kReportEvery)) return;
  if (job_.spec().data.loader == LoaderSpec{} && !job_.data->in_files()) return;
  reported_ = now;
  const auto counts = job_.feed.loader->counts();
  line_.say(Fed{.hits = counts.hits,
                .from_peers = counts.from_peers,
                .from_storage = counts.from_storage,
                .peers_failed = counts.peers_failed,
                .prepared = counts.prepared,
                .received = counts.received,
                .fetch_s = counts.fetch_s,
                .prep_s = counts.prep_s,
                .wait_s = counts.wait_s});
}

}  // namespace mayfly
