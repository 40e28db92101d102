#include "train/peer_caches.h"

#include <utility>

namespace mayfly {
namespace {

using Kind = DataHeader::Kind;

Result<bool> asked(DataLink& link, std::int64_t sample, std::vector<std::byte>& out) {
  if (auto sent = link.send({.kind = Kind::ask, .number = sample}); !sent) return unexpected(sent.error());
  const auto answer = link.receive();
  if (!answer) return unexpected(answer.error());
  if (!*answer) return fail("the connection was closed");
  const auto& header = **answer;
  const bool there = header.kind == Kind::sample;
  if ((!there && header.kind != Kind::missing) || header.number != sample)
    return fail("answer {} for sample {}, want sample {}", static_cast<unsigned>(header.kind), header.number, sample);
  if (!there) return false;
  if (header.count > TcpPeerCaches::kMostBytes)
    return fail("sample {} of {} bytes, want at most {}", sample, header.count, TcpPeerCaches::kMostBytes);
  out.resize(header.count);
  if (auto received = link.receive_into(out); !received) return unexpected(received.error());
  return true;
}

}  // namespace

/// One other worker.
struct TcpPeerCaches::Peer {
  std::string address{};
  std::vector<std::unique_ptr<DataLink>> idle{};
  Clock::time_point again{};  ///< not to be asked before
};

Result<std::unique_ptr<TcpPeerCaches>> TcpPeerCaches::open(const Reception::Options& options) {
  std::unique_ptr<TcpPeerCaches> caches(new TcpPeerCaches(options));
  auto reception = Reception::open(options, [raw = caches.get()](Guest& guest) { return raw->attend(guest); });
  if (!reception) return unexpected(reception.error());
  caches->reception_ = std::move(*reception);
  return caches;
}

void TcpPeerCaches::serve(PartitionedSamples* samples) {
  const std::lock_guard lock(serving_);
  samples_ = samples;
}

void TcpPeerCaches::set_neighbours(const Neighbours& neighbours) {
  std::map<int, std::shared_ptr<Peer>> present;
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < std::min(neighbours.workers.size(), neighbours.addresses.size()); ++i) {
    const auto& address = neighbours.addresses[i];
    const auto known = peers_.find(neighbours.workers[i]);
    present[neighbours.workers[i]] = known != peers_.end() && known->second->address == address
                                         ? known->second
                                         : std::make_shared<Peer>(Peer{.address = address});
  }
  peers_ = std::move(present);
}

Result<void> TcpPeerCaches::attend(Guest& guest) {
  guest.link.limit_sending(kPatience * 10);
  while (true) {
    const auto received = guest.link.receive();
    if (!received) return unexpected(received.error());
    if (!*received) return {};
    const auto& header = **received;
    Result<void> done = fail("a message of kind {}", static_cast<unsigned>(header.kind));
    if (header.kind == Kind::ask) done = answer(guest, header.number);
    if (header.kind == Kind::give) done = accept(guest, header);
    if (!done) return done;
  }
}

Result<void> TcpPeerCaches::answer(Guest& guest, std::int64_t sample) {
  std::vector<std::byte> bytes;
  bool there = false;
  {
    const std::shared_lock lock(serving_);
    there = samples_ != nullptr && samples_->find(sample, bytes);
  }
  if (!there) return guest.link.send({.kind = Kind::missing, .number = sample});
  return guest.link.send({.kind = Kind::sample, .number = sample, .count = bytes.size()}, bytes);
}

Result<void> TcpPeerCaches::accept(Guest& guest, const DataHeader& header) {
  if (header.count > kMostBytes)
    return fail("sample {} of {} bytes, want at most {}", header.number, header.count, kMostBytes);
  std::vector<std::byte> bytes(header.count);
  if (auto received = guest.link.receive_into(bytes); !received) return received;
  const std::shared_lock lock(serving_);
  if (samples_ != nullptr) samples_->keep(header.number, bytes);
  return {};
}

std::shared_ptr<TcpPeerCaches::Peer> TcpPeerCaches::peer(int worker) {
  const std::lock_guard lock(mutex_);
  const auto found = peers_.find(worker);
  if (found == peers_.end() || Clock::now() < found->second->again) return nullptr;
  return found->second;
}

Result<std::unique_ptr<DataLink>> TcpPeerCaches::link(Peer& peer) {
  {
    const std::lock_guard lock(mutex_);
    if (!peer.idle.empty()) {
      auto idle = std::move(peer.idle.back());
      peer.idle.pop_back();
      return idle;
    }
  }
  auto fresh = std::make_unique<DataLink>(options_.credentials, options_.network);
  fresh->limit_sending(kPatience);
  if (auto connected = fresh->connect(peer.address, kPatience); !connected) return unexpected(connected.error());
  fresh->limit_silence(kPatience);
  return fresh;
}

void TcpPeerCaches::put_back(Peer& peer, std::unique_ptr<DataLink> link) {
  const std::lock_guard lock(mutex_);
  peer.idle.push_back(std::move(link));
}

/// Its connections may be of a process that is gone.
void TcpPeerCaches::pause(Peer& peer) {
  const std::lock_guard lock(mutex_);
  peer.idle.clear();
  peer.again = Clock::now() + std::chrono::duration_cast<Clock::duration>(kPause);
}

Result<bool> TcpPeerCaches::ask(int worker, std::int64_t sample, std::vector<std::byte>& out) {
  const auto known = peer(worker);
  if (!known) return false;
  auto open = link(*known);
  auto found = open ? asked(**open, sample, out) : Result<bool>(unexpected(open.error()));
  if (!found) {
    pause(*known);
    return found;
  }
  put_back(*known, std::move(*open));
  return found;
}

void TcpPeerCaches::give(int worker, std::int64_t sample, std::span<const std::byte> bytes) {
  const auto known = peer(worker);
  if (!known) return;
  auto open = link(*known);
  if (open && (*open)->send({.kind = Kind::give, .number = sample, .count = bytes.size()}, bytes))
    return put_back(*known, std::move(*open));
  pause(*known);
}

}  // namespace mayfly
