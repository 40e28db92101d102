#pragma once

#include <cstdint>
#include <span>

namespace mayfly {

/// In which order the samples of a data set are trained: each epoch is a permutation of its own, drawn from the seed,
/// so any process can tell which sample stands at any place of the run without having gone through those before. Places
/// count from the first sample of the run; place / size is the epoch.
class SampleOrder {
 public:
  /// Requires size > 0.
  SampleOrder(std::int64_t size, std::uint64_t seed);
  /// Requires place >= 0.
  std::int64_t sample_at(std::int64_t place) const;
  /// reading_of() the samples at places [first, first + count).
  std::int64_t reading(std::int64_t first, std::int64_t count) const;
  std::int64_t size() const { return size_; }

 private:
  std::int64_t size_;
  std::uint64_t seed_;
  int half_bits_;  ///< of the Feistel network's domain, the least power of four, 4 or more, that holds the data set
};

/// Tells what has been read from what was not: equal for the same samples in any order, and hardly ever for others. By
/// it a controller sees that a worker trained on what it was leased.
std::int64_t reading_of(std::span<const std::int64_t> samples);

}  // namespace mayfly
