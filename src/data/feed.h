#pragma once

#include <memory>

#include "data/dataset.h"
#include "data/loader.h"
#include "data/order.h"
#include "data/raw_samples.h"
#include "data/sample_cache.h"
#include "job/train_spec.h"

namespace mayfly {

/// The way of a job's samples from storage to the trainer, as the job file's `loader` block wants it.
struct Feed {
  std::unique_ptr<Storage> storage{};
  std::unique_ptr<SampleCache> cache{};     ///< none: nothing is kept
  std::unique_ptr<CachedSamples> cached{};  ///< where there is a cache: it, then storage
  std::unique_ptr<Loader> loader{};         ///< goes first
  RawSamples& source() const { return cached ? static_cast<RawSamples&>(*cached) : *storage; }
};
/// The data set must outlive it.
Feed make_feed(const LoaderSpec& spec, const Dataset& data, const SampleOrder& order);

LoaderOptions loader_options(const LoaderSpec& spec, const Dataset& data);

}  // namespace mayfly
