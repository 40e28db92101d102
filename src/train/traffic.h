#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "train/data_link.h"

namespace mayfly {

/// What goes between this process and its peers at the same time, moved by one thread: whoever is ready is served, so
/// nobody has to hear before it speaks. Each way to or from a peer keeps its order. A failure is for ever.
class Traffic {
 public:
  /// One link for each peer, by its number; none where there is no peer. They may be aborted from elsewhere.
  explicit Traffic(std::vector<std::shared_ptr<DataLink>> links);

  /// To be sent; stays where it is until nothing is left to move.
  void send(int peer, std::optional<DataHeader> header, std::span<const std::byte> payload);
  /// Awaited: this very header, if there is one, and so many bytes.
  void receive(int peer, std::optional<DataHeader> header, std::span<std::byte> payload);

  /// Moves everything on until nothing is awaited any more.
  Result<void> hear_all();
  /// Until all is sent, too.
  Result<void> finish();

 private:
  template <class Bytes>
  struct Piece {
    DataHeader header{};  ///< to be sent, or as it should come
    Bytes header_left{};  ///< of `header`, or of `heard`
    Bytes payload_left{};
    DataHeader heard{};
    bool moved(std::size_t bytes);
  };
  struct Peer {
    std::shared_ptr<DataLink> link{};
    std::deque<Piece<std::span<const std::byte>>> out{};
    std::deque<Piece<std::span<std::byte>>> in{};
    bool sends() const { return !out.empty() || link->sealed(); }
    bool idle() const { return in.empty() && !sends(); }
  };

  Result<void> move(bool all);
  Result<bool> send_some(Peer& peer);
  Result<bool> receive_some(Peer& peer);
  Result<void> wait();

  std::vector<Peer> peers_;
};

}  // namespace mayfly
