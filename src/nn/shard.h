#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "nn/trainer.h"

namespace mayfly {

/// Floats [first, first + count) of what is trained.
struct ShardRange {
  std::size_t first = 0;
  std::size_t count = 0;
  std::size_t end() const { return first + count; }
  bool operator==(const ShardRange&) const = default;
};
/// Equal parts, one behind the other; the sizes differ by one at most.
ShardRange shard_range(std::size_t size, int shard, int shards);

/// One server's part of what is trained, with the moments of its parameters. Updates are torch::optim's: what the
/// shards of a network hold is, put together, what Trainer::apply() would have made of it. One thread.
class Shard {
 public:
  static std::unique_ptr<Shard> make(const TrainSpec& spec, const ExchangeLayout& layout, int shard, int shards);
  virtual ~Shard() = default;

  virtual ShardRange range() const = 0;
  virtual std::span<const float> weights() const = 0;
  /// One update by the pushes of its workers, each this shard's part of an exchange() after finish_push(); added up in
  /// this order, so that the same update gives the same bits everywhere.
  virtual void apply(std::span<const std::span<const float>> pushes, std::int64_t step, int workers) = 0;

  /// Everything in one piece: what another server of the same shard needs, or the writer of a checkpoint.
  virtual std::span<std::byte> state() = 0;

  /// This shard's part of a whole state, and the way back.
  virtual void take(Trainer& whole) = 0;
  virtual void put(Trainer& whole) const = 0;
};

}  // namespace mayfly
