#include "predict/data_path.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace mayfly {
namespace {

constexpr double kMebi = 1 << 20;

/// Samples of a mebibyte, so that samples/s are MiB/s.
DataPath published() {
  return {.device = 1e9, .sample = {kMebi}, .storage = {530 * kMebi}, .memory = {20 * 1024 * kMebi}};
}

TEST(DataPath, FetchesAsFastAsThePublishedExample) {
  const std::vector<std::pair<double, double>> published_rates = {
      {0, 530}, {0.25, 700.6}, {0.5, 1033.3}, {0.55, 1141.7}, {0.65, 1444.8}, {0.8, 2401.4}, {1, 20480}};
  for (const auto& [cached, mebibytes] : published_rates) {
    DataPath path = published();
    path.cached = cached;
    EXPECT_NEAR(data_speed(path).fetch, mebibytes, 0.05) << cached;
    EXPECT_EQ(data_speed(path).bottleneck, Part::fetch);
  }
}

TEST(DataPath, IsAsFastAsItsSlowestStage) {
  DataPath path = published();
  path.device = 1000;
  path.prep = 300;
  path.threads = 4;
  path.cached = 0.65;
  auto found = data_speed(path);
  EXPECT_DOUBLE_EQ(found.speed, 1000);
  EXPECT_EQ(found.bottleneck, Part::compute);
  path.threads = 3;
  found = data_speed(path);
  EXPECT_DOUBLE_EQ(found.speed, 900);
  EXPECT_EQ(found.bottleneck, Part::prep);
  path.cached = 0.25;
  found = data_speed(path);
  EXPECT_NEAR(found.speed, 700.6, 0.05);
  EXPECT_EQ(found.bottleneck, Part::fetch);
  path.storage = {};
  EXPECT_TRUE(std::isfinite(data_speed(path).speed));
}

TEST(DataPath, SharesTheCoresBetweenPrepAndTrainingWithoutAGpu) {
  // 2 cores; training takes 10 ms of a core per sample, prep 5 ms: 2 / 15 ms.
  const DataPath path{.device = 200, .prep = 200, .threads = 2, .cores = 2, .device_core_s = 0.010};
  const auto found = data_speed(path);
  EXPECT_NEAR(found.speed, 2 / 0.015, 1e-9);
  EXPECT_EQ(found.bottleneck, Part::prep);
}

TEST(DataPath, DevicesThatWaitForEachOtherAreNotMadeFasterByFasterOnes) {
  DataPath path{.device = 1000, .exchange_s = 0.004};
  EXPECT_DOUBLE_EQ(data_speed(path).speed, 200);
  EXPECT_EQ(data_speed(path).bottleneck, Part::interconnect);
  path.device *= 2;
  EXPECT_NEAR(data_speed(path).speed, 222.2, 0.1);
  path.exchange_s = 0.0001;
  EXPECT_EQ(data_speed(path).bottleneck, Part::compute);
}

TEST(DataPath, KnowsTheSmallestCacheThatIsEnough) {
  DataPath path = published();
  path.device = 1141.7;
  EXPECT_NEAR(*enough_cache(path), 0.55, 1e-4);
  path.device = 500;
  EXPECT_EQ(*enough_cache(path), 0);
  path.device = 30000;
  EXPECT_FALSE(enough_cache(path));
}

TEST(DataPath, KnowsTheThreadsThatAreEnough) {
  DataPath path{.device = 1000, .prep = 150};
  EXPECT_NEAR(*enough_threads(path), 1000.0 / 150, 1e-9);
  path.cores = 4;
  EXPECT_FALSE(enough_threads(path));
  path.prep = 0;
  EXPECT_EQ(*enough_threads(path), 0);
}

TEST(DataPath, AsksTheCachesOfOtherMachinesBeforeStorage) {
  DataPath path = published();
  path.cached = 0.25;
  path.machines = 3;
  path.network = {1000 * kMebi};
  EXPECT_NEAR(data_speed(path).fetch, 700.6, 0.05);  // each for itself
  path.partitioned = true;
  EXPECT_NEAR(1 / data_speed(path).fetch, 0.25 / 20480 + 0.5 / 1000 + 0.25 / 530, 1e-9);
  path.machines = 8;  // together they hold everything
  EXPECT_NEAR(1 / data_speed(path).fetch, 0.25 / 20480 + 0.75 / 1000, 1e-9);
}

/// Share of an epoch's accesses that hit, each sample being read once in a fresh random order: 1 - a + a ln a with
/// a = 1 - cached. mayfly's own caches keep what they have, so no model needs it.
double least_recently_used_hits(double cached) {
  const double missing = 1 - std::clamp(cached, 0.0, 1.0);
  return missing > 0 ? 1 - missing + missing * std::log(missing) : 1;
}

TEST(Caches, ThatForgetTheOldestHitLessThanTheyHold) {
  const std::vector<std::pair<double, double>> published_hits = {{0, 0},      {.25, .034}, {.35, .070}, {.5, .153},
                                                                 {.65, .283}, {.8, .478},  {.9, .670},  {1, 1}};
  for (const auto& [cached, hits] : published_hits) EXPECT_NEAR(least_recently_used_hits(cached), hits, 5e-4) << cached;
}

}  // namespace
}  // namespace mayfly
