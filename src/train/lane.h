#pragma once

#include <chrono>
#include <cstddef>
#include <mutex>

#include "base/units.h"

namespace mayfly {

/// One direction of an emulated machine's network: everything that a process sends, or receives, passes through it one
/// chunk behind the other, in the order of asking. After a pause a small burst passes at once. Any thread.
class Lane {
 public:
  using Clock = std::chrono::steady_clock;
  /// What may be asked for at a time: callers go by chunks, so that they take turns.
  static constexpr std::size_t kChunk = 64 << 10;

  explicit Lane(BytesPerSecond rate);
  /// When the last of these bytes is through, if they are ready at `now`.
  Clock::time_point passage(std::size_t bytes, Clock::time_point now);
  /// Waits until then.
  void pass(std::size_t bytes);

 private:
  const BytesPerSecond rate_;
  const Clock::duration burst_;  ///< the larger of a chunk's time and 5 ms
  std::mutex mutex_{};
  Clock::time_point free_{};  ///< when everything asked for is through
};

/// Both directions; one for all connections of a process.
struct EmulatedNetwork {
  explicit EmulatedNetwork(BytesPerSecond rate) : out(rate), in(rate) {}
  Lane out;
  Lane in;
};

/// What adding up among so many workers takes at least: in a ring each sends 2 (n - 1) / n of the bytes.
constexpr Seconds ring_time(Bytes size, int workers, BytesPerSecond rate) {
  return size * (2.0 * (workers - 1) / workers) / rate;
}

}  // namespace mayfly
