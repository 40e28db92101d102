#include "data/order.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <vector>

namespace mayfly {
namespace {

std::vector<std::int64_t> epoch_of(const SampleOrder& order, std::int64_t epoch) {
  std::vector<std::int64_t> samples;
  for (std::int64_t place = 0; place < order.size(); ++place)
    samples.push_back(order.sample_at(epoch * order.size() + place));
  return samples;
}

bool is_permutation_of_all(const std::vector<std::int64_t>& samples) {
  std::vector<bool> seen(samples.size(), false);
  for (const std::int64_t sample : samples) {
    if (sample < 0 || sample >= static_cast<std::int64_t>(samples.size()) || seen[sample]) return false;
    seen[sample] = true;
  }
  return true;
}

TEST(SampleOrder, EachEpochHasEverySampleOnce) {
  for (std::int64_t size = 1; size <= 2000; ++size) {
    const SampleOrder order(size, 7);
    for (const std::int64_t epoch : {0, 1, 5}) ASSERT_TRUE(is_permutation_of_all(epoch_of(order, epoch))) << size;
  }
  for (const std::int64_t size : {4095, 4096, 4097, 50'000, 65'537, 1 << 18})
    ASSERT_TRUE(is_permutation_of_all(epoch_of(SampleOrder(size, 1), 3))) << size;
}

TEST(SampleOrder, EpochsAndSeedsDiffer) {
  const SampleOrder order(100, 1);
  EXPECT_EQ(epoch_of(order, 4), epoch_of(SampleOrder(100, 1), 4));
  EXPECT_NE(epoch_of(order, 0), epoch_of(order, 1));
  EXPECT_NE(epoch_of(order, 0), epoch_of(SampleOrder(100, 2), 0));
  // Epoch 1 of one seed is not epoch 0 of the next either.
  EXPECT_NE(epoch_of(order, 1), epoch_of(SampleOrder(100, 2), 0));
}

TEST(SampleOrder, AReadingTellsWhatWasRead) {
  const SampleOrder order(2000, 1);
  EXPECT_EQ(reading_of(std::vector<std::int64_t>{0, 1, 2}), reading_of(std::vector<std::int64_t>{2, 0, 1}));
  EXPECT_EQ(order.reading(0, 2), reading_of(std::vector<std::int64_t>{1108, 356}));
  EXPECT_NE(order.reading(0, 64), order.reading(1, 64));                 // one skipped
  EXPECT_NE(order.reading(0, 64), SampleOrder(2000, 2).reading(0, 64));  // another order
  EXPECT_NE(order.reading(0, 64), SampleOrder(1000, 1).reading(0, 64));  // another data set
  EXPECT_EQ(order.reading(0, 2000), order.reading(2000, 2000));          // each epoch has the same samples
  EXPECT_EQ(reading_of({}), 0);
  // Of scripts, too: tests/python/unit_test.py.
  EXPECT_EQ(order.reading(0, 64), 2584526794994004367);
}

// Each of 10 samples should stand first in a tenth of 10,000 epochs: 1000 times, give or take 5 deviations of
// sqrt(10000 x 0.1 x 0.9) = 30.
TEST(SampleOrder, AnySampleMayComeFirst) {
  const SampleOrder order(10, 3);
  std::vector<int> first(10, 0);
  for (std::int64_t epoch = 0; epoch < 10'000; ++epoch) ++first[order.sample_at(epoch * 10)];
  for (const int times : first) EXPECT_NEAR(times, 1000, 150);
}

// Neighbours in the data set (one class after another, as files often are) are strangers in the order: places whose
// sample is followed by the next one, of 10,000, are Poisson with mean 1.
TEST(SampleOrder, NeighboursAreParted) {
  const auto samples = epoch_of(SampleOrder(10'000, 1), 0);
  int together = 0;
  for (std::size_t i = 1; i < samples.size(); ++i) together += samples[i] == samples[i - 1] + 1;
  EXPECT_LE(together, 10);
}

TEST(SampleOrder, PlacesFarOutCostTheSame) {
  const SampleOrder order(std::int64_t{1} << 40, 1);
  const std::int64_t sample = order.sample_at(std::numeric_limits<std::int64_t>::max());
  EXPECT_GE(sample, 0);
  EXPECT_LT(sample, order.size());
}

}  // namespace
}  // namespace mayfly
