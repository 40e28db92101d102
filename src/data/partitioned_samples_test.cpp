#include "data/partitioned_samples.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>

#include "data/order.h"
#include "support/numbered_dataset.h"

namespace mayfly {
namespace {

using support::NumberedDataset;
constexpr std::int64_t kSamples = 1000;  // of 8 bytes

TEST(OwnerOf, GivesEveryWorkerItsShareAndNobodyElsesWhenOneGoes) {
  const std::vector<int> all{3, 4, 9, 12}, left{3, 4, 12};
  std::map<int, int> shares;
  for (std::int64_t sample = 0; sample < 10'000; ++sample) {
    const int before = owner_of(sample, all), after = owner_of(sample, left);
    ++shares[before];
    if (before == 9) continue;
    EXPECT_EQ(after, before) << sample;
  }
  // 2500 each; the deviation of a fair draw is 43.
  for (const int worker : all) EXPECT_NEAR(shares[worker], 2500, 200) << worker;
  EXPECT_EQ(owner_of(1, {}), -1);
}

/// Workers in one process; some may be out of reach.
struct Crew final : PeerCaches {
  struct Worker {
    explicit Worker(Crew& crew, std::size_t capacity)
        : cache(capacity), storage(crew.data), samples(cache, storage, crew) {}
    SampleCache cache;
    Storage storage;
    PartitionedSamples samples;
  };
  void add(int number, std::size_t capacity = 1 << 20) {
    workers[number] = std::make_unique<Worker>(*this, capacity);
    tell();
  }
  void tell() {
    std::vector<int> numbers;
    for (const auto& [number, worker] : workers) numbers.push_back(number);
    for (const auto& [number, worker] : workers) worker->samples.set_members(number, numbers);
  }
  /// All samples, by turns, in an order of their own.
  void run_epoch(std::int64_t epoch) {
    const SampleOrder order(kSamples, 3);
    auto turn = workers.begin();
    for (std::int64_t place = 0; place < kSamples; ++place) {
      const auto sample = order.sample_at(epoch * kSamples + place);
      std::vector<std::byte> raw, want;
      const auto got = turn->second->samples.raw(sample, raw);
      ASSERT_TRUE(got) << got.error().message;
      ASSERT_TRUE(data.fetch(sample, want));
      --data.fetched;
      ASSERT_EQ(raw, want) << sample;
      if (++turn == workers.end()) turn = workers.begin();
    }
  }
  SourceCounts counts() const {
    SourceCounts sum;
    for (const auto& [number, worker] : workers) {
      const auto own = worker->samples.counts();
      sum.hits += own.hits;
      sum.from_peers += own.from_peers;
      sum.from_storage += own.from_storage;
      sum.peers_failed += own.peers_failed;
    }
    return sum;
  }

  Result<bool> ask(int worker, std::int64_t sample, std::vector<std::byte>& out) override {
    if (lost.contains(worker)) return fail("w{} does not answer", worker);
    return workers.at(worker)->samples.find(sample, out);
  }
  void give(int worker, std::int64_t sample, std::span<const std::byte> bytes) override {
    if (!lost.contains(worker)) workers.at(worker)->samples.keep(sample, bytes);
  }

  NumberedDataset data{kSamples};
  std::map<int, std::unique_ptr<Worker>> workers{};
  std::set<int> lost{};
};

TEST(PartitionedSamples, StorageIsReadOnceForAllWorkersAndEpochs) {
  Crew crew;
  for (const int worker : {1, 2, 3}) crew.add(worker);
  for (int epoch = 0; epoch < 3; ++epoch) crew.run_epoch(epoch);
  EXPECT_EQ(crew.data.fetched, kSamples);
  const auto counts = crew.counts();
  EXPECT_EQ(counts.from_storage, kSamples);
  EXPECT_EQ(counts.hits + counts.from_peers, 2 * kSamples);
  EXPECT_GT(counts.from_peers, 0);
}

// Half of the samples fit into each of two caches, with little to spare: together they hold all.
TEST(PartitionedSamples, WhatAWorkerOwnsGoesBeforeWhatItSawFirst) {
  Crew crew;
  for (const int worker : {1, 2}) crew.add(worker, 8 * kSamples * 6 / 10);
  for (int epoch = 0; epoch < 3; ++epoch) crew.run_epoch(epoch);
  const int fetched = crew.data.fetched;
  crew.run_epoch(3);
  EXPECT_EQ(crew.data.fetched, fetched) << "nothing is read any more";
}

TEST(PartitionedSamples, AWorkerThatDoesNotAnswerCostsAReadAndIsCounted) {
  Crew crew;
  for (const int worker : {1, 2}) crew.add(worker);
  crew.lost = {2};
  auto& first = *crew.workers.at(1);
  for (std::int64_t sample = 0; sample < kSamples; ++sample) {
    std::vector<std::byte> raw;
    ASSERT_TRUE(first.samples.raw(sample, raw));
  }
  EXPECT_EQ(first.samples.counts().from_storage, kSamples);
  EXPECT_EQ(first.samples.counts().peers_failed, kSamples) << "it owns each sample, or did";
}

TEST(PartitionedSamples, ANewOwnerAsksTheOldOneBeforeStorage) {
  Crew crew;
  crew.add(1);
  crew.run_epoch(0);
  crew.add(2);
  crew.run_epoch(1);
  EXPECT_EQ(crew.data.fetched, kSamples);
  EXPECT_GT(crew.workers.at(2)->samples.counts().from_peers, 0);
}

TEST(PartitionedSamples, WhatCannotBeReadIsAnError) {
  Crew crew;
  crew.add(1);
  crew.data.lost = 7;
  std::vector<std::byte> raw;
  const auto got = crew.workers.at(1)->samples.raw(7, raw);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().message, "file of 7: cannot read");
}

}  // namespace
}  // namespace mayfly
