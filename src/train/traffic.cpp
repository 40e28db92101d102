#include "train/traffic.h"

#include <poll.h>

#include <algorithm>

namespace mayfly {
namespace {

/// What one peer may take or give before the next one's turn: small enough that all get on alike.
constexpr std::size_t kTurn = 256 << 10;

template <class Bytes>
Bytes start_of(Bytes bytes) {
  return bytes.first(std::min(bytes.size(), kTurn));
}

}  // namespace

Traffic::Traffic(std::vector<std::shared_ptr<DataLink>> links) : peers_(links.size()) {
  for (std::size_t i = 0; i < links.size(); ++i) peers_[i].link = std::move(links[i]);
}

void Traffic::send(int peer, std::optional<DataHeader> header, std::span<const std::byte> payload) {
  if (!header && payload.empty()) return;
  auto& piece = peers_[static_cast<std::size_t>(peer)].out.emplace_back();
  if (header) {
    piece.header = *header;
    piece.header_left = std::as_bytes(std::span(&piece.header, 1));
  }
  piece.payload_left = payload;
}

void Traffic::receive(int peer, std::optional<DataHeader> header, std::span<std::byte> payload) {
  if (!header && payload.empty()) return;
  auto& piece = peers_[static_cast<std::size_t>(peer)].in.emplace_back();
  if (header) {
    piece.header = *header;
    piece.header_left = std::as_writable_bytes(std::span(&piece.heard, 1));
  }
  piece.payload_left = payload;
}

Result<void> Traffic::hear_all() { return move(false); }
Result<void> Traffic::finish() { return move(true); }

/// Returns whether that was the rest.
template <class Bytes>
bool Traffic::Piece<Bytes>::moved(std::size_t bytes) {
  const auto of_header = std::min(bytes, header_left.size());
  header_left = header_left.subspan(of_header);
  payload_left = payload_left.subspan(bytes - of_header);
  return header_left.empty() && payload_left.empty();
}

Result<bool> Traffic::send_some(Peer& peer) {
  const bool sealed = peer.link->sealed();
  if (peer.out.empty() && !sealed) return false;
  auto none = Piece<std::span<const std::byte>>{};
  auto& piece = peer.out.empty() ? none : peer.out.front();
  const auto sent = peer.link->send_some(piece.header_left, start_of(piece.payload_left));
  if (!sent) return unexpected(sent.error());
  if (!peer.out.empty() && piece.moved(*sent)) peer.out.pop_front();
  return *sent > 0 || (sealed && !peer.link->sealed());
}

Result<bool> Traffic::receive_some(Peer& peer) {
  if (peer.in.empty()) return false;
  auto& piece = peer.in.front();
  const bool headed = !piece.header_left.empty();
  const auto received = peer.link->receive_now(piece.header_left, start_of(piece.payload_left));
  if (!received) return unexpected(received.error());
  const bool whole = piece.moved(*received);
  if (headed && piece.header_left.empty() && piece.heard != piece.header)
    return fail(
        "kind {} of formation {}, exchange {}, bytes {} + {}; want kind {} of formation {}, exchange {}, {} + {}",
        static_cast<unsigned>(piece.heard.kind), piece.heard.formation, piece.heard.number, piece.heard.first,
        piece.heard.count, static_cast<unsigned>(piece.header.kind), piece.header.formation, piece.header.number,
        piece.header.first, piece.header.count);
  if (whole) peer.in.pop_front();
  return *received > 0;
}

Result<void> Traffic::move(bool all) {
  while (true) {
    bool moved = false, left = false;
    for (auto& peer : peers_) {
      if (!peer.link) continue;
      const auto sent = send_some(peer);
      if (!sent) return unexpected(sent.error());
      const auto received = receive_some(peer);
      if (!received) return unexpected(received.error());
      moved = moved || *sent || *received;
      left = left || !peer.in.empty() || (all && peer.sends());
    }
    if (!left) return {};
    if (moved) continue;
    if (auto waited = wait(); !waited) return waited;
  }
}

/// What ends a link wakes this, too. A peer of whom nothing is wanted now must be within reach all the same: others may
/// be waiting for it, and its turn comes.
Result<void> Traffic::wait() {
  std::vector<pollfd> events(peers_.size(), pollfd{.fd = -1, .events = 0, .revents = 0});
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    const auto& peer = peers_[i];
    if (!peer.link) continue;
    events[i] = peer.link->awaited();
    events[i].events = static_cast<short>((peer.in.empty() ? 0 : POLLIN) | (peer.sends() ? POLLOUT : 0));
  }
  ::poll(events.data(), events.size(), -1);
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    if (peers_[i].link && peers_[i].idle() && (events[i].revents & (POLLERR | POLLHUP)) != 0)
      return fail("the connection to rank {} broke", i);
  }
  return {};
}

}  // namespace mayfly
