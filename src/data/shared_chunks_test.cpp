#include "data/shared_chunks.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "data/feed.h"
#include "support/numbered_dataset.h"

namespace mayfly {
namespace {

using support::NumberedDataset;

/// A job of its own: what it trains on, and how it gets there.
struct Job {
  Job(const LoaderSpec& spec, const FeedContext& context, std::uint64_t seed = 3, std::int64_t samples = 1000)
      : data(samples), order(samples, seed), feed(make_feed(spec, data, order, context)) {}
  /// False: a sample is wrong, or did not come.
  bool take(std::int64_t first, std::int64_t count) {
    const auto batch = feed.loader->batch(first, count);
    if (!batch || batch->size() != count) return false;
    for (std::int64_t i = 0; i < count; ++i) {
      const auto sample = order.sample_at(first + i);
      const auto at = static_cast<std::size_t>(i);
      if (batch->labels.span()[at] != sample || batch->inputs.span()[2 * at] != static_cast<float>(sample))
        return false;
    }
    return true;
  }
  bool run(std::int64_t batch, std::int64_t places) {
    for (std::int64_t first = 0; first + batch <= places; first += batch) {
      if (!take(first, batch)) return false;
    }
    return true;
  }
  NumberedDataset data;
  SampleOrder order;
  Feed feed;
};

LoaderSpec sharing(const std::string& what) {
  return {.prep_threads = 2, .share = fmt::format("test-{}-{}", ::getpid(), what)};
}

TEST(SharedChunks, JobsWithOtherBatchesTakeTheSameSamplesPreparedAboutOnce) {
  const auto spec = sharing("batches");
  Job first(spec, {.batch = 32}), second(spec, {.batch = 20});
  ASSERT_TRUE(first.feed.shared && second.feed.shared) << first.feed.note << second.feed.note;
  bool well = false;
  {
    const std::jthread other([&] { well = second.run(20, 3000); });
    EXPECT_TRUE(first.run(32, 3000));
  }
  EXPECT_TRUE(well);
  // What is prepared ahead is counted when it is done; soon no job has anything in hand.
  const auto settled = [&] {
    const auto counts = first.feed.loader->counts();
    return counts.prepared == first.data.prepared && counts.from_storage == first.data.fetched;
  };
  for (int i = 0; i < 1000 && !settled(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  const auto one = first.feed.loader->counts(), two = second.feed.loader->counts();
  EXPECT_GT(one.received + two.received, 0);
  EXPECT_EQ(one.prepared, first.data.prepared);
  EXPECT_EQ(one.from_storage, first.data.fetched);
}

TEST(SharedChunks, AJobThatSharesWithNobodyPreparesEverythingOnceByItself) {
  Job job(sharing("alone"), {.batch = 24});
  EXPECT_TRUE(job.run(24, 2400));
  EXPECT_EQ(job.feed.loader->counts().received, 0);
  EXPECT_GE(job.data.prepared, 2400);
  EXPECT_LE(job.data.prepared, 2400 + 5 * 24 + 32) << "but for what it prepared ahead";
}

TEST(SharedChunks, AJobWithOtherDataOrOrderGoesAloneAndSaysSo) {
  const auto spec = sharing("others");
  Job first(spec, {.identity = 1, .seed = 3, .batch = 16});
  Job other_data(spec, {.identity = 2, .seed = 3, .batch = 16});
  Job other_order(spec, {.identity = 1, .seed = 4, .batch = 16}, 4);
  for (auto* job : {&other_data, &other_order}) {
    EXPECT_FALSE(job->feed.shared);
    EXPECT_NE(job->feed.note.find("what others share there is of another kind"), std::string::npos) << job->feed.note;
    EXPECT_TRUE(job->run(16, 320));
  }
}

TEST(SharedChunks, ALoaderThatGoesWhileAnotherJobIsFrozenDoesNotWaitForIt) {
  const auto spec = sharing("frozen");
  Job frozen(spec, {.batch = 16});
  EXPECT_TRUE(frozen.take(0, 16));  // and nothing more
  Job job(spec, {.batch = 16});
  EXPECT_TRUE(job.take(0, 16));
  job.feed.loader->expect(16, 16 * 200, 16 * 200);  // further than the other's buffers reach
}

TEST(SharedChunks, WhatCannotBeReadIsAnError) {
  Job job(sharing("broken"), {.batch = 16});
  job.data.lost = job.order.sample_at(5);
  const auto batch = job.feed.loader->batch(0, 16);
  ASSERT_FALSE(batch);
  EXPECT_EQ(batch.error().message, fmt::format("file of {}: cannot read", job.data.lost));
}

}  // namespace
}  // namespace mayfly
