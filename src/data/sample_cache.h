#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <shared_mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/rng.h"

namespace mayfly {

/// Raw samples in memory: admitted until it is full, never replaced (MinIO). As an epoch asks for every sample once, in
/// an order of its own, whatever is kept is as good as anything else, and replacing what will be asked for later only
/// loses hits: a cache of a share x of the data hits x of the time from the second epoch on. For many threads at once.
class SampleCache {
 public:
  /// `capacity` in bytes of samples; what it takes to find them comes on top. The seed chooses who goes on resize().
  explicit SampleCache(std::size_t capacity, std::uint64_t seed = 1) : capacity_(capacity), rng_(seed) {}

  /// False, and `out` as it was, where it is not held.
  bool find(std::int64_t sample, std::vector<std::byte>& out) const;
  bool holds(std::int64_t sample) const;
  /// Keeps a copy where there is room. False: it is held already, or there is none.
  bool offer(std::int64_t sample, std::span<const std::byte> bytes);
  /// Where it holds more than that, samples go at random, so that what stays still hits as often as it is large.
  void resize(std::size_t capacity);
  /// Those for which it is true go.
  void drop(const std::function<bool(std::int64_t)>& whom);

  std::size_t capacity() const;
  std::size_t bytes() const;  ///< held
  std::size_t size() const;   ///< samples held
  /// In no order.
  std::vector<std::int64_t> samples() const;

 private:
  using Copy = std::shared_ptr<const std::vector<std::byte>>;

  mutable std::shared_mutex mutex_{};
  std::unordered_map<std::int64_t, Copy> entries_{};
  std::vector<std::int64_t> held_{};  ///< the keys, so that one can be drawn
  std::size_t capacity_;
  std::size_t bytes_ = 0;
  Rng rng_;
};

}  // namespace mayfly
