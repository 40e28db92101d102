#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "nn/shard.h"
#include "train/reception.h"
#include "wire/message.h"

namespace mayfly {

/// The data side of a server process: takes what workers push and keeps it staged until it counts, hands out
/// parameters. One thread a connection; the calls below come from one thread, the owner's. What arrives goes from the
/// socket to where it stays. A guest that does not prove first that it belongs to the run is turned away.
/// docs/protocol.md#servers
class ShardServer {
 public:
  using Options = Reception::Options;
  static Result<std::unique_ptr<ShardServer>> open(Options options);
  virtual ~ShardServer() = default;

  /// "127.0.0.1:40001".
  virtual std::string address() const = 0;
  /// A formation begins with the shard at this state. Connections of earlier ones are closed, and what they pushed is
  /// forgotten. The shard stays the server's until the next begin(), which returns it. No shard: it will come with a
  /// further begin() of the same formation; a guest that wants something of it waits. Formation -1: none; all guests
  /// are turned out.
  virtual std::unique_ptr<Shard> begin(std::int64_t formation, std::unique_ptr<Shard> shard, std::int64_t sample) = 0;
  /// Applies an update. An error where it does not follow from the present state, or a lease is not staged.
  virtual Result<void> commit(const Commit& commit) = 0;
  virtual void forget(const Forget& forget) = 0;
  /// Keeps a copy of the present state for a StateFetch; the one before is dropped.
  virtual void keep_copy() = 0;
  /// The whole state of `sample`, if it was kept or is the present one. From any thread.
  virtual Result<void> read_copy(std::int64_t formation, std::int64_t sample, std::span<std::byte> into) = 0;
  /// Samples in the present state.
  virtual std::int64_t sample() const = 0;
};

}  // namespace mayfly
