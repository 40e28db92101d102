#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "train/abortable.h"
#include "train/lane.h"
#include "wire/channel.h"

namespace mayfly {

/// A worker's connections to the servers of one formation. All calls but abort() come from one thread; after an error
/// every further call fails.
class ShardClient : public Abortable {
 public:
  struct Options {
    std::int64_t formation = 0;
    int shards = 1;
    std::vector<std::string> addresses{};  ///< address i that of shard i % shards; empty: it has no more
    Credentials credentials{};
    std::size_t size = 0;  ///< floats of all shards
    int worker = 0;        ///< of several servers of a shard, each worker pulls from one, pushes to all
    std::shared_ptr<EmulatedNetwork> network{};  ///< none: as fast as it goes
  };
  static std::unique_ptr<ShardClient> make(Options options);

  /// First of all. Blocks until every server has answered; one that holds something else than it should is an error.
  virtual Result<void> connect() = 0;

  /// The parameters at `sample` or later, written over `weights`; waits for the servers to get there. Returns the
  /// oldest state among the shards.
  virtual Result<std::int64_t> pull(std::int64_t sample, std::span<float> weights) = 0;
  /// What is pushed for a lease; must stay where it is until finish_push().
  virtual void begin_push(std::int64_t lease, std::span<const float> values) = 0;
  /// This part is final: it goes while the rest is computed.
  virtual void push(std::size_t first, std::size_t count) = 0;
  /// Everything else goes too. Returns when all of it is staged at every server.
  virtual Result<void> finish_push() = 0;
};

}  // namespace mayfly
