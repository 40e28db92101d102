#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace mayfly {

/// A worker's connections to the servers of one formation. All calls but abort() come from one thread; after an error
/// every further call fails.
class ShardClient {
 public:
  struct Options {
    std::int64_t formation = 0;
    int shards = 1;
    std::vector<std::string> addresses{};  ///< address i that of shard i % shards
    std::string token{};
    std::size_t size = 0;  ///< floats of all shards
    int worker = 0;        ///< of several servers of a shard, each worker pulls from one, pushes to all
    std::optional<BytesPerSecond> network{};  ///< of an emulated machine, each way
  };
  static Result<std::unique_ptr<ShardClient>> connect(Options options);
  virtual ~ShardClient() = default;

  /// The parameters at `sample` or later, written over `weights`; waits for the servers to get there. Returns the
  /// oldest state among the shards.
  virtual Result<std::int64_t> pull(std::int64_t sample, std::span<float> weights) = 0;
  /// What is pushed for a lease; must stay where it is until finish_push().
  virtual void begin_push(std::int64_t lease, std::span<const float> values) = 0;
  /// This part is final: it goes while the rest is computed.
  virtual void push(std::size_t first, std::size_t count) = 0;
  /// Everything else goes too. Returns when all of it is staged at every server.
  virtual Result<void> finish_push() = 0;

  /// From any thread, at any time: blocked calls return an error at once, later ones too.
  virtual void abort() = 0;
};

}  // namespace mayfly
