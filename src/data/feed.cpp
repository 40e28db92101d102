#include "data/feed.h"

namespace mayfly {

LoaderOptions loader_options(const LoaderSpec& spec, const Dataset& data) {
  return {.prep_threads = spec.prep_threads.value_or(data.in_files() || spec.storage ? 1 : 0), .ahead = spec.ahead};
}

Feed make_feed(const LoaderSpec& spec, const Dataset& data, const SampleOrder& order) {
  Feed feed{.storage = std::make_unique<Storage>(data, spec.storage)};
  if (spec.cache_mb > 0) {
    feed.cache = std::make_unique<SampleCache>(static_cast<std::size_t>(megabytes(spec.cache_mb).value));
    feed.cached = std::make_unique<CachedSamples>(*feed.cache, *feed.storage);
  }
  feed.loader = std::make_unique<Loader>(data, order, feed.source(), loader_options(spec, data));
  return feed;
}

}  // namespace mayfly
