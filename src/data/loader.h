#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "data/batch.h"
#include "data/dataset.h"
#include "data/ledger.h"
#include "data/order.h"
#include "data/raw_samples.h"
#include "data/shared_chunks.h"

namespace mayfly {

struct LoaderOptions {
  int prep_threads = 0;   ///< 0: batch() itself fetches and prepares, nothing is done ahead
  int fetch_threads = 2;  ///< reads under way at once where storage is slow; none where there are no prep threads
  int ahead = 2;          ///< batches begun before they are asked for
  SharedChunks* shared = nullptr;  ///< where samples are prepared with other jobs; must outlive the loader
};

/// Since the loader was made. Samples, seconds, bytes.
struct LoaderCounts {
  double fetch_s = 0;  ///< busy, over all threads; waiting for storage included
  double prep_s = 0;   ///< busy, over all threads
  double wait_s = 0;   ///< the trainer waited in batch()
  double fetched_bytes = 0;
  double storage_bytes = 0;  ///< those of them that no cache had
  std::int64_t hits = 0;     ///< of the own cache
  std::int64_t from_peers = 0;
  std::int64_t from_storage = 0;
  std::int64_t peers_failed = 0;
  std::int64_t prepared = 0;
  std::int64_t discarded = 0;  ///< of those prepared, never asked for
  std::int64_t received = 0;   ///< prepared by another job
};

/// "waited 0.52 s for data; 4000 samples prepared in 1.02 s, 12 of them in vain; 40.00 MB fetched in 0.31 s, 50 % from
/// the cache"
std::string sentence(const LoaderCounts& counts);

/// Batches of a run, made ready while the trainer computes. Prep threads fetch samples and prepare them at once, while
/// the bytes are at hand; where fetching makes them wait for storage, fetch threads take it over, and a bounded amount
/// waits between the two. What comes next is told by expect() or guessed from the batches before; a wrong guess costs
/// work, never a wrong sample. For one trainer's thread.
class Loader {
 public:
  /// The data set and the source must outlive it.
  Loader(const Dataset& data, const SampleOrder& order, RawSamples& source, LoaderOptions options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// The samples at places [first, first + count) of the order. An error of fetching or preparing one of them; the next
  /// call starts anew.
  Result<Batch> batch(std::int64_t first, std::int64_t count);
  /// Likely to be asked for next: places [first, first + count), and so on every `stride` places. What was begun and is
  /// not among them is dropped.
  void expect(std::int64_t first, std::int64_t count, std::int64_t stride);

  LoaderCounts counts() const;

 private:
  using Raws = std::vector<std::vector<std::byte>>;  ///< of the samples of a slice
  struct Work;                                       ///< a batch that was begun
  struct Slice {
    std::shared_ptr<Work> work{};
    std::size_t first = 0, count = 0;  ///< samples of the batch
    Raws raws{};
    // What fetching it took, where that is done already.
    Seconds blocked{};
    double fetch_s = 0;
  };

  std::shared_ptr<Work> begun(SampleRange range);
  /// Drops what is not among the ranges and begins what is new. With the lock held.
  void plan(const std::vector<SampleRange>& ranges);
  void drop(Work& work);
  bool expected(SampleRange range) const;
  void note_stride(SampleRange range);
  std::vector<SampleRange> guessed(SampleRange range) const;
  Result<Batch> read_here(SampleRange range);

  void fetch_slices();
  void prepare_slices();
  bool has_unfetched() const;
  bool has_room() const;
  std::size_t slice_size(std::size_t batch) const;
  Slice next_to_fetch();
  /// Fetches and prepares sample by sample.
  Result<void> fetch_and_prepare(Slice& slice, LoaderCounts& spent);
  void note_pace(const LoaderCounts& spent, Seconds blocked);
  Result<void> fetch(Slice& slice, LoaderCounts& spent);
  Result<void> prepare(const Slice& slice, LoaderCounts& spent);
  /// Sample i of the batch.
  Result<void> prepare(const Batch& batch, std::size_t i, std::span<const std::byte> raw) const;
  Result<void> prepare_shared(const Slice& slice, LoaderCounts& spent);
  /// With the lock held.
  void finish(Slice slice, const Result<void>& done);
  void add(const LoaderCounts& spent);

  const Dataset& data_;
  const SampleOrder order_;
  RawSamples& source_;
  const LoaderOptions options_;
  const std::size_t length_, labels_;  ///< of one sample
  const std::shared_ptr<UsedMemory> memory_ = std::make_shared<UsedMemory>();

  mutable std::mutex mutex_{};
  std::condition_variable to_fetch_{}, to_prepare_{}, ready_{};
  std::deque<std::shared_ptr<Work>> works_{};  ///< in the order they are expected
  std::deque<Slice> fetched_{};
  std::size_t fetching_ = 0;   ///< slices on their way into fetched_
  std::vector<Raws> spare_{};  ///< memory that was used before
  // Of late, seconds a sample.
  double blocked_ = 0;  ///< in fetching, while no processor was used
  double busy_ = 0;     ///< in fetching and preparing, the rest
  bool apart_ = false;  ///< fetch threads fetch, prep threads only prepare
  LoaderCounts counts_{};
  std::optional<SampleRange> last_{};
  std::optional<std::int64_t> stride_{};  ///< between the last two batches
  bool steady_ = true;                    ///< the stride before was the same
  bool told_ = false;                     ///< expect() says what comes next
  std::int64_t told_stride_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_{};
};

}  // namespace mayfly
