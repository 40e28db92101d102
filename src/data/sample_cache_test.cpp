#include "data/sample_cache.h"

#include <gtest/gtest.h>

#include <cmath>
#include <list>
#include <thread>
#include <unordered_map>

#include "data/order.h"

namespace mayfly {
namespace {

std::vector<std::byte> bytes(std::size_t count, int value = 0) { return std::vector(count, std::byte(value)); }

TEST(SampleCache, AdmitsUntilItIsFullAndNeverReplaces) {
  SampleCache cache(10);
  EXPECT_TRUE(cache.offer(1, bytes(6, 1)));
  EXPECT_FALSE(cache.offer(2, bytes(5, 2))) << "no room";
  EXPECT_TRUE(cache.offer(3, bytes(4, 3))) << "a smaller one still fits";
  EXPECT_FALSE(cache.offer(1, bytes(0))) << "held already";
  EXPECT_FALSE(cache.offer(4, bytes(11))) << "more than there ever will be";
  std::vector<std::byte> out = bytes(1, 9);
  EXPECT_FALSE(cache.find(2, out));
  EXPECT_EQ(out, bytes(1, 9));
  EXPECT_TRUE(cache.find(1, out));
  EXPECT_EQ(out, bytes(6, 1));
  EXPECT_EQ(cache.bytes(), 10u);
}

TEST(SampleCache, ShrinksAtRandomAndGrowsAgain) {
  SampleCache cache(1000, 7), same(1000, 7), other(1000, 8);
  for (auto* one : {&cache, &same, &other}) {
    for (int i = 0; i < 1000; ++i) one->offer(i, bytes(1, i % 100));
    one->resize(300);
    EXPECT_EQ(one->size(), 300u);
    EXPECT_EQ(one->bytes(), 300u);
  }
  EXPECT_EQ(cache.samples(), same.samples());
  EXPECT_NE(cache.samples(), other.samples());
  int low = 0;
  for (const auto sample : cache.samples()) {
    std::vector<std::byte> out;
    ASSERT_TRUE(cache.find(sample, out));
    EXPECT_EQ(out, bytes(1, static_cast<int>(sample) % 100));
    if (sample < 500) ++low;
  }
  // 300 of 1000, half of them below 500: 150 with a deviation of 7.2.
  EXPECT_NEAR(low, 150, 36);
  EXPECT_FALSE(cache.offer(5000, bytes(1)));
  cache.resize(301);
  EXPECT_TRUE(cache.offer(5000, bytes(1)));
  cache.resize(0);
  EXPECT_EQ(cache.size(), 0u);
}

TEST(SampleCache, HoldsWhatManyThreadsOfferAndNoMore) {
  SampleCache cache(4000);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&cache, t] {
      std::vector<std::byte> out;
      for (int i = 0; i < 2000; ++i) {
        const int sample = (i * 7 + t * 500) % 2000;
        if (cache.find(sample, out)) {
          ASSERT_EQ(out, bytes(8, sample % 256));
        } else {
          cache.offer(sample, bytes(8, sample % 256));
        }
        if (t == 0 && i % 500 == 250) cache.resize(2000);
        if (t == 0 && i % 500 == 499) cache.resize(4000);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_LE(cache.bytes(), 4000u);
  EXPECT_EQ(cache.bytes(), 8 * cache.size());
}

/// The textbook cache that mayfly does not use: whatever was used longest ago makes room.
class StrictLru {
 public:
  explicit StrictLru(std::size_t capacity) : capacity_(capacity) {}
  bool access(std::int64_t sample) {
    const auto found = places_.find(sample);
    const bool hit = found != places_.end();
    if (hit) order_.erase(found->second);
    order_.push_front(sample);
    places_[sample] = order_.begin();
    if (order_.size() > capacity_) {
      places_.erase(order_.back());
      order_.pop_back();
    }
    return hit;
  }

 private:
  std::size_t capacity_;
  std::list<std::int64_t> order_{};
  std::unordered_map<std::int64_t, std::list<std::int64_t>::iterator> places_{};
};

struct HitRates {
  double minio = 0;
  double lru = 0;
};

/// Over three epochs in orders of their own, after one that fills the caches.
HitRates measured(std::int64_t samples, double share) {
  const auto room = static_cast<std::size_t>(share * static_cast<double>(samples));
  SampleCache minio(room);
  StrictLru lru(room);
  const SampleOrder order(samples, 5);
  HitRates hits;
  std::vector<std::byte> out;
  for (std::int64_t place = 0; place < 4 * samples; ++place) {
    const auto sample = order.sample_at(place);
    const bool counts = place >= samples;
    const bool kept = minio.find(sample, out);
    if (!kept) minio.offer(sample, bytes(1));
    if (kept && counts) hits.minio += 1. / static_cast<double>(3 * samples);
    if (lru.access(sample) && counts) hits.lru += 1. / static_cast<double>(3 * samples);
  }
  return hits;
}

// With a share x of the data in the cache and a = 1 - x, strict LRU hits 1 - a + a ln a of the time: what was used
// since a sample's last turn is new with a chance that grows through the epoch. x = .5: 1 - .5 + .5 ln .5 = .153.
TEST(SampleCache, HitsAsOftenAsItIsLargeWhereLruHitsFarLess) {
  for (const auto& [share, lru] :
       {std::pair{.25, .034}, {.35, .070}, {.5, .153}, {.65, .283}, {.8, .478}, {.9, .670}}) {
    const double a = 1 - share;
    EXPECT_NEAR(1 - a + a * std::log(a), lru, .001);
    const auto hits = measured(20'000, share);
    EXPECT_NEAR(hits.minio, share, 1e-9) << share;
    EXPECT_NEAR(hits.lru, lru, .01) << share;
  }
}

}  // namespace
}  // namespace mayfly
