#include "data/feed.h"

#include <algorithm>

namespace mayfly {

LoaderOptions loader_options(const LoaderSpec& spec, const Dataset& data) {
  return {.prep_threads = spec.prep_threads.value_or(data.in_files() || spec.storage ? 1 : 0), .ahead = spec.ahead};
}

RawSamples& Feed::source() const {
  if (partitioned) return *partitioned;
  return cached ? static_cast<RawSamples&>(*cached) : *storage;
}

Feed make_feed(const LoaderSpec& spec, const Dataset& data, const SampleOrder& order, const FeedContext& context) {
  Feed feed{.storage = std::make_unique<Storage>(data, spec.storage)};
  if (spec.cache_mb > 0) {
    feed.cache = std::make_unique<SampleCache>(static_cast<std::size_t>(megabytes(spec.cache_mb).value));
    if (spec.partitioned && context.peers != nullptr)
      feed.partitioned = std::make_unique<PartitionedSamples>(*feed.cache, *feed.storage, *context.peers);
    else
      feed.cached = std::make_unique<CachedSamples>(*feed.cache, *feed.storage);
  }
  auto options = loader_options(spec, data);
  if (!spec.share.empty()) {
    auto shared = SharedChunks::join(
        data, order, feed.source(),
        {.name = spec.share, .identity = context.identity, .seed = context.seed, .ahead = spec.ahead * context.batch});
    if (shared) {
      feed.shared = std::move(*shared);
      options.shared = feed.shared.get();
      options.prep_threads = std::max(options.prep_threads, 1);
    } else {
      feed.note = fmt::format("prepares its samples alone: {}", shared.error().message);
    }
  }
  feed.loader = std::make_unique<Loader>(data, order, feed.source(), options);
  return feed;
}

}  // namespace mayfly
