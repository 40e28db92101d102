#include "data/loader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "base/rng.h"
#include "data/feed.h"
#include "support/numbered_dataset.h"

namespace mayfly {
namespace {

using support::NumberedDataset;

/// Everything a loader needs.
struct Stage {
  explicit Stage(LoaderOptions options, std::int64_t samples = 1000)
      : data(samples), order(samples, 3), storage(data), loader(data, order, storage, options) {}
  /// Asks for a batch and compares it with the samples at these places.
  void expect_true_batch(std::int64_t first, std::int64_t count) {
    const auto batch = loader.batch(first, count);
    ASSERT_TRUE(batch.has_value()) << batch.error().message;
    ASSERT_EQ(batch->size(), count);
    for (std::int64_t i = 0; i < count; ++i) {
      const auto sample = order.sample_at(first + i);
      const auto at = static_cast<std::size_t>(i);
      ASSERT_EQ(batch->samples[at], sample);
      ASSERT_EQ(batch->labels.span()[at], sample);
      ASSERT_EQ(batch->inputs.span()[2 * at], static_cast<float>(sample));
      ASSERT_EQ(batch->inputs.span()[2 * at + 1], static_cast<float>(sample * sample));
    }
  }
  NumberedDataset data;
  SampleOrder order;
  Storage storage;
  Loader loader;
};

TEST(Loader, WithoutThreadsReadsWhatIsAskedForAndNoMore) {
  Stage stage({.prep_threads = 0});
  for (int step = 0; step < 10; ++step) stage.expect_true_batch(step * 16, 8);
  EXPECT_EQ(stage.data.prepared, 80);
  const auto counts = stage.loader.counts();
  EXPECT_EQ(counts.prepared, 80);
  EXPECT_EQ(counts.from_storage, 80);
  EXPECT_EQ(counts.discarded, 0);
  EXPECT_EQ(counts.fetched_bytes, 640);
  EXPECT_GT(counts.wait_s, 0);
}

TEST(Loader, GuessesAStrideAndIsRightAcrossEpochs) {
  Stage stage({.prep_threads = 2, .ahead = 3}, 100);
  for (int step = 0; step < 50; ++step) stage.expect_true_batch(step * 24, 8);
  EXPECT_EQ(stage.loader.counts().discarded, 0);
  EXPECT_LE(stage.data.prepared, (50 + 3) * 8);
}

TEST(Loader, BeginsWhatIsExpectedBeforeItIsAskedFor) {
  Stage stage({.prep_threads = 1, .ahead = 2});
  stage.loader.expect(0, 8, 32);
  // The batch that is expected and two more: they come without being asked for.
  while (stage.loader.counts().prepared < 24) std::this_thread::yield();
  stage.expect_true_batch(0, 8);
  stage.expect_true_batch(32, 8);
  stage.expect_true_batch(64, 8);
  EXPECT_EQ(stage.loader.counts().discarded, 0);
}

TEST(Loader, CountsWhatAWrongGuessCost) {
  Stage stage({.prep_threads = 1, .ahead = 1});
  stage.loader.expect(0, 8, 8);
  while (stage.loader.counts().prepared < 16) std::this_thread::yield();
  stage.expect_true_batch(400, 8);
  EXPECT_EQ(stage.loader.counts().discarded, 16);
}

TEST(Loader, FailsOnlyWhereABatchHasTheSampleThatFails) {
  for (const bool preparing : {false, true}) {
    for (const int threads : {0, 2}) {
      Stage stage({.prep_threads = threads, .ahead = 4});
      const auto bad = stage.order.sample_at(37);
      (preparing ? stage.data.broken : stage.data.lost) = bad;
      for (int step = 0; step < 4; ++step) stage.expect_true_batch(step * 8, 8);
      const auto batch = stage.loader.batch(32, 8);
      ASSERT_FALSE(batch.has_value());
      EXPECT_EQ(batch.error().message, fmt::format("file of {}: {}", bad, preparing ? "not a sample" : "cannot read"));
      for (int step = 5; step < 9; ++step) stage.expect_true_batch(step * 8, 8);
    }
  }
}

TEST(Loader, EndsWithWorkUnderWay) {
  Stage stage({.prep_threads = 3, .fetch_threads = 3, .ahead = 20});
  stage.expect_true_batch(0, 32);
  stage.expect_true_batch(32, 32);
}

/// Strides, sizes and expectations change at random, some of them wrong: every sample is compared.
void ask_at_random(Stage& stage, int steps) {
  Rng rng(7);
  std::int64_t first = 0, count = 5, stride = 20;
  for (int step = 0; step < steps; ++step) {
    if (rng.chance(.1)) stride = count + rng.below(30);
    if (rng.chance(.1)) count = 1 + rng.below(static_cast<int>(std::min<std::int64_t>(stride, 40)));
    if (rng.chance(.05)) first = rng.below(5000);
    if (rng.chance(.2)) stage.loader.expect(first + rng.below(3), count, stride);
    stage.expect_true_batch(first, count);
    if (::testing::Test::HasFatalFailure()) return;
    first += stride;
  }
  EXPECT_GT(stage.loader.counts().discarded, 0) << "there were wrong guesses";
}

TEST(Loader, NeverGivesAWrongSample) {
  for (const int threads : {1, 4}) {
    Stage stage({.prep_threads = threads, .fetch_threads = 3, .ahead = 3}, 317);
    ask_at_random(stage, 1500);
  }
}

TEST(Loader, HasThreadsOfItsOwnForSlowStorageAndStillGivesNoWrongSample) {
  Stage stage({.prep_threads = 1, .fetch_threads = 3, .ahead = 3}, 317);
  stage.data.slow = true;
  ask_at_random(stage, 150);
  EXPECT_GT(stage.data.most_at_once, 1) << "one thread prepares, so others must have fetched";
}

TEST(Loader, TellsPeopleWhatItDid) {
  EXPECT_EQ(
      sentence({.fetch_s = .25, .prep_s = 1, .wait_s = .5, .fetched_bytes = 2e6, .prepared = 100, .discarded = 3}),
      "waited 0.50 s for data; 100 samples prepared in 1.00 s, 3 of them in vain; 2.00 MB fetched in 0.25 s");
  const auto text = sentence({.hits = 50, .from_peers = 25, .from_storage = 25});
  EXPECT_TRUE(text.ends_with(", 50.0 % from the cache, 25.0 % from peers")) << text;
}

TEST(Feed, HitsItsCacheAsOftenAsItIsLarge) {
  NumberedDataset data(1000);
  const SampleOrder order(1000, 1);
  // 8 bytes each: .002 MB hold 250 of the 1000.
  const auto feed = make_feed({.prep_threads = 2, .ahead = 0, .cache_mb = .002}, data, order);
  for (int step = 0; step < 60; ++step) ASSERT_TRUE(feed.loader->batch(step * 50, 50).has_value());
  const auto counts = feed.loader->counts();
  EXPECT_EQ(feed.cache->size(), 250u);
  EXPECT_EQ(counts.hits, 500) << "in two of three epochs";
  EXPECT_EQ(counts.from_storage * 8, static_cast<std::int64_t>(counts.storage_bytes));
  EXPECT_EQ(counts.hits + counts.from_storage, static_cast<std::int64_t>(counts.fetched_bytes) / 8);
}

TEST(Feed, DataInMemoryNeedsNoThreads) {
  const auto digits = open_dataset({.name = "digits", .samples = 10}, {}, ".");
  EXPECT_EQ(loader_options({}, **digits).prep_threads, 0);
  EXPECT_EQ(loader_options({}, NumberedDataset(1)).prep_threads, 1);
  EXPECT_EQ(loader_options({.prep_threads = 3, .ahead = 7}, **digits).prep_threads, 3);
  EXPECT_EQ(loader_options({.prep_threads = 0}, NumberedDataset(1)).prep_threads, 0);
}

}  // namespace
}  // namespace mayfly
