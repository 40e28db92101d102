#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/partitioned_samples.h"
#include "train/reception.h"
#include "wire/data_message.h"

namespace mayfly {

/// The caches of the run's other workers, over TCP, and the own cache for them. A peer that does not answer in time is
/// not asked for a while. docs/protocol.md#caches
class TcpPeerCaches final : public PeerCaches {
 public:
  static constexpr Seconds kPatience{0.5};              ///< with a peer, at each step of an answer
  static constexpr Seconds kPause{2};                   ///< after one was lost or slow
  static constexpr std::uint64_t kMostBytes = 1 << 30;  ///< of a sample

  static Result<std::unique_ptr<TcpPeerCaches>> open(const Reception::Options& options);

  /// "127.0.0.1:40001".
  const std::string& address() const { return reception_->address(); }
  /// What peers are given from, and give to; none: they hear that nothing is there. When it returns no peer uses the
  /// one before.
  void serve(PartitionedSamples* samples);
  void set_neighbours(const Neighbours& neighbours);

  Result<bool> ask(int worker, std::int64_t sample, std::vector<std::byte>& out) override;
  void give(int worker, std::int64_t sample, std::span<const std::byte> bytes) override;

 private:
  using Clock = std::chrono::steady_clock;
  struct Peer;
  explicit TcpPeerCaches(const Reception::Options& options) : options_(options) {}

  Result<void> attend(Guest& guest);
  Result<void> answer(Guest& guest, std::int64_t sample);
  Result<void> accept(Guest& guest, const DataHeader& header);
  /// None: it is not known, or not to be asked now.
  std::shared_ptr<Peer> peer(int worker);
  Result<std::unique_ptr<DataLink>> link(Peer& peer);
  void put_back(Peer& peer, std::unique_ptr<DataLink> link);
  void pause(Peer& peer);

  const Reception::Options options_;
  std::shared_mutex serving_{};
  PartitionedSamples* samples_ = nullptr;  ///< under `serving_`
  std::mutex mutex_{};                     ///< of the peers and all in them
  std::map<int, std::shared_ptr<Peer>> peers_{};
  std::unique_ptr<Reception> reception_{};  ///< whose threads use all of the above
};

}  // namespace mayfly
