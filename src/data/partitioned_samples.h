#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <shared_mutex>
#include <span>
#include <vector>

#include "base/result.h"
#include "data/raw_samples.h"
#include "data/sample_cache.h"

namespace mayfly {

/// Which of these workers keeps a sample. Each has a score of its own for every sample, and the highest counts
/// (rendezvous hashing): every worker that knows the others knows it, and only the samples of those that go or come
/// change hands. -1: there are none.
int owner_of(std::int64_t sample, std::span<const int> workers);

/// The caches of other workers. For many threads at once.
class PeerCaches {
 public:
  virtual ~PeerCaches() = default;
  /// Whether the worker has the sample, which then is in `out`. An error: it is lost, or slow.
  virtual Result<bool> ask(int worker, std::int64_t sample, std::vector<std::byte>& out) = 0;
  /// For its cache. It may get lost.
  virtual void give(int worker, std::int64_t sample, std::span<const std::byte> bytes) = 0;
};

/// One cache made of all workers' caches. A sample that the own cache does not have is asked of its owner, then of the
/// one that owned it before the owner came, then read from storage, and what was read is given to its owner, so that
/// from the second epoch on storage is asked only for what fits nowhere. Samples that others own are kept as long as
/// there is room. A worker that is lost or slow costs a read from storage and nothing else.
class PartitionedSamples final : public RawSamples {
 public:
  /// All must outlive it.
  PartitionedSamples(SampleCache& cache, RawSamples& storage, PeerCaches& peers)
      : cache_(cache), storage_(storage), peers_(peers) {}

  /// From now on these are there, itself included.
  void set_members(int self, std::vector<int> workers);
  Result<void> raw(std::int64_t sample, std::vector<std::byte>& out) override;
  SourceCounts counts() const override;

  /// For peers: never waits for storage or other peers.
  bool find(std::int64_t sample, std::vector<std::byte>& out) const { return cache_.find(sample, out); }
  /// Where there is room, or can be made by dropping what others own.
  void keep(std::int64_t sample, std::span<const std::byte> bytes);

 private:
  /// Who may have a sample: its owner, and who was or will be its owner without that one.
  struct Owners {
    int first = -1;
    int second = -1;
    int self = -1;
  };
  Owners owners(std::int64_t sample) const;
  bool ask(int worker, int self, std::int64_t sample, std::vector<std::byte>& out);

  SampleCache& cache_;
  RawSamples& storage_;
  PeerCaches& peers_;
  std::atomic<std::int64_t> hits_ = 0, from_peers_ = 0, peers_failed_ = 0;

  mutable std::shared_mutex mutex_{};
  int self_ = -1;
  std::vector<int> members_{};
  bool full_ = false;  ///< what others own is not kept any more
};

}  // namespace mayfly
