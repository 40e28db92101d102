#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "data/dataset.h"
#include "data/loader.h"
#include "data/order.h"
#include "data/partitioned_samples.h"
#include "data/raw_samples.h"
#include "data/sample_cache.h"
#include "data/shared_chunks.h"
#include "job/train_spec.h"

namespace mayfly {

/// The way of a job's samples from storage to the trainer, as the job file's `loader` block wants it.
struct Feed {
  std::unique_ptr<Storage> storage{};
  std::unique_ptr<SampleCache> cache{};               ///< none: nothing is kept
  std::unique_ptr<CachedSamples> cached{};            ///< where there is a cache of its own: it, then storage
  std::unique_ptr<PartitionedSamples> partitioned{};  ///< where the workers' caches are one: they, then storage
  std::unique_ptr<SharedChunks> shared{};             ///< where samples are prepared with other jobs
  std::unique_ptr<Loader> loader{};                   ///< goes first
  std::string note{};                                 ///< for people: what was wanted and is not to be had
  RawSamples& source() const;
};
/// What the job file's `loader` block does not say.
struct FeedContext {
  std::uint64_t identity = 0;  ///< of the data: jobs that share must have the same
  std::uint64_t seed = 1;      ///< of the order
  std::int64_t batch = 1;
  PeerCaches* peers = nullptr;  ///< none: no other worker to share caches with. Must outlive the feed
};
/// The data set must outlive it. Where nothing can be shared it says so and prepares by itself.
Feed make_feed(const LoaderSpec& spec, const Dataset& data, const SampleOrder& order, const FeedContext& context = {});

LoaderOptions loader_options(const LoaderSpec& spec, const Dataset& data);

}  // namespace mayfly
