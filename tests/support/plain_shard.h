#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "nn/shard.h"

namespace mayfly::support {

/// A shard without LibTorch: an update adds the pushes to the weights. Its state is the weights.
class PlainShard final : public Shard {
 public:
  PlainShard(std::size_t size, int shard, int shards)
      : range_(shard_range(size, shard, shards)), weights_(range_.count, 0) {}

  ShardRange range() const override { return range_; }
  std::span<const float> weights() const override { return weights_; }
  void apply(std::span<const std::span<const float>> pushes, std::int64_t, int) override {
    for (const auto push : pushes) {
      for (std::size_t i = 0; i < push.size(); ++i) weights_[i] += push[i];
    }
  }
  std::span<std::byte> state() override { return std::as_writable_bytes(std::span(weights_)); }
  void take(Trainer&) override {}
  void put(Trainer&) const override {}

 private:
  ShardRange range_;
  std::vector<float> weights_;
};

}  // namespace mayfly::support
