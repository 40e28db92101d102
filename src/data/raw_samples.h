#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "data/dataset.h"
#include "data/sample_cache.h"

namespace mayfly {

/// Where raw samples came from, since the start.
struct SourceCounts {
  std::int64_t hits = 0;        ///< of the own cache
  std::int64_t from_peers = 0;  ///< of other workers' caches
  std::int64_t from_storage = 0;
  std::int64_t peers_failed = 0;  ///< asked a peer in vain
  double storage_bytes = 0;
  bool operator==(const SourceCounts&) const = default;
};

/// Where raw samples come from. For many threads at once.
class RawSamples {
 public:
  virtual ~RawSamples() = default;
  /// What Dataset::fetch() gives. `out` may hold an earlier sample.
  virtual Result<void> raw(std::int64_t sample, std::vector<std::byte>& out) = 0;
  /// Those of the sources below it included.
  virtual SourceCounts counts() const = 0;
};

/// The data set's own files or memory, as fast as they are, or held to a rate that all threads share.
class Storage final : public RawSamples {
 public:
  explicit Storage(const Dataset& data, std::optional<BytesPerSecond> rate = {}) : data_(data), rate_(rate) {}
  Result<void> raw(std::int64_t sample, std::vector<std::byte>& out) override;
  SourceCounts counts() const override;

 private:
  void hold_to_rate(std::size_t bytes);

  const Dataset& data_;
  std::optional<BytesPerSecond> rate_;
  std::mutex mutex_{};
  std::chrono::steady_clock::time_point free_{};  ///< when the emulated disk has done all it was asked for
  std::atomic<std::int64_t> samples_ = 0;
  std::atomic<std::int64_t> bytes_ = 0;
};

/// A cache in front of another source: what that gives is offered to the cache.
class CachedSamples final : public RawSamples {
 public:
  CachedSamples(SampleCache& cache, RawSamples& below) : cache_(cache), below_(below) {}
  Result<void> raw(std::int64_t sample, std::vector<std::byte>& out) override;
  SourceCounts counts() const override;

 private:
  SampleCache& cache_;
  RawSamples& below_;
  std::atomic<std::int64_t> hits_ = 0;
};

}  // namespace mayfly
