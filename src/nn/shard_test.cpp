#include "nn/shard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "support/trainers.h"

namespace mayfly {
namespace {

using support::batch_of;
using support::make;
using support::open;
using support::pictures;
using support::small_mlp;
using support::small_resnet;
using support::state_of;
using Kind = OptimiserSpec::Kind;

/// The servers of a job, in one process.
class Servers {
 public:
  Servers(const TrainSpec& spec, Trainer& first, int count) {
    for (int i = 0; i < count; ++i) {
      shards_.push_back(Shard::make(spec, first.layout(), i, count));
      shards_.back()->take(first);
    }
  }
  void apply(const std::vector<std::span<const float>>& pushes, std::int64_t step, int workers) {
    for (const auto& shard : shards_) {
      std::vector<std::span<const float>> parts;
      for (const auto& push : pushes) parts.push_back(push.subspan(shard->range().first, shard->range().count));
      shard->apply(parts, step, workers);
    }
  }
  std::vector<float> weights() const {
    std::vector<float> all;
    for (const auto& shard : shards_) all.insert(all.end(), shard->weights().begin(), shard->weights().end());
    return all;
  }
  void pull(Trainer& worker) const {
    std::ranges::copy(weights(), worker.weights().begin());
    worker.weights_written();
  }
  void put(Trainer& whole) const {
    for (const auto& shard : shards_) shard->put(whole);
  }

 private:
  std::vector<std::unique_ptr<Shard>> shards_;
};

/// Trains with a worker and servers, and without servers.
struct Pair {
  explicit Pair(const TrainSpec& spec) : data(open(spec)), plain(make(spec, *data)), whole(make(spec, *data)) {}
  std::unique_ptr<Dataset> data;
  std::unique_ptr<Trainer> plain;
  std::unique_ptr<Trainer> whole;  ///< what the servers hold in the end
};

Pair trained_both_ways(const TrainSpec& spec, int servers_count, std::int64_t steps) {
  Pair pair(spec);
  auto other_seed = spec;
  other_seed.seed = 99;
  const auto worker = make(other_seed, *pair.data);
  Servers servers(spec, *pair.plain, servers_count);
  for (std::int64_t step = 0; step < steps; ++step) {
    const auto samples = batch_of(*pair.data, step, 8);
    pair.plain->compute(*read_batch(*pair.data, samples), 1, step * 8);
    pair.plain->apply(step, 3);
    servers.pull(*worker);
    worker->compute(*read_batch(*pair.data, samples), 1, step * 8);
    worker->finish_push(1);
    servers.apply({worker->exchange()}, step, 3);
  }
  servers.put(*pair.whole);
  return pair;
}

void expect_equal_to_the_bit(const TrainSpec& spec) {
  for (const int servers : {1, 2, 3}) {
    const auto pair = trained_both_ways(spec, servers, 6);
    EXPECT_EQ(state_of(*pair.whole), state_of(*pair.plain)) << servers << " servers";
  }
}

TEST(Shards, PutTogetherAreWhatOneTrainerWouldHaveMade) {
  auto spec = small_mlp();
  expect_equal_to_the_bit(spec);
  spec.optimiser.momentum = 0;
  expect_equal_to_the_bit(spec);
  spec.optimiser = {.kind = Kind::adam, .rate = .01, .weight_decay = 1e-3};
  expect_equal_to_the_bit(spec);
  spec.optimiser.kind = Kind::adamw;
  expect_equal_to_the_bit(spec);
}

TEST(Shards, FollowScheduleWorkersAndNormToTheBit) {
  auto spec = small_mlp();
  spec.scale_rate = true;
  spec.optimiser.rate = .01;
  spec.schedule = {.kind = ScheduleSpec::Kind::cosine, .warmup_steps = 2, .total_steps = 6, .floor = .1};
  spec.clip = .5;
  expect_equal_to_the_bit(spec);
}

std::span<const float> floats(const TensorView& view) {
  return {reinterpret_cast<const float*>(view.bytes.data()), view.bytes.size() / sizeof(float)};
}

// A mean of 1 and a variance near 1 move by a rounding of 2^-24 each update; the rest is equal to the bit.
TEST(Shards, MoveRunningStatisticsByTheirChanges) {
  for (const int servers : {1, 2, 3}) {
    const auto pair = trained_both_ways(small_resnet(), servers, 6);
    const auto wanted = pair.plain->model_state();
    const auto seen = pair.whole->model_state();
    int statistics = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (wanted[i].name.find("running") == std::string::npos) {
        EXPECT_TRUE(std::ranges::equal(wanted[i].bytes, seen[i].bytes)) << wanted[i].name;
        continue;
      }
      ++statistics;
      for (std::size_t k = 0; k < floats(wanted[i]).size(); ++k) {
        const auto value = floats(wanted[i])[k];
        EXPECT_NEAR(floats(seen[i])[k], value, 6e-7 * std::max(1.F, std::abs(value))) << wanted[i].name;
      }
    }
    EXPECT_GT(statistics, 10);
    EXPECT_NE(floats(seen.front())[0], 0);
  }
}

TEST(Shards, AddUpSeveralPushesAsTheirWorkersWould) {
  const auto spec = small_mlp();
  const auto data = open(spec);
  const auto few = make(spec, *data);
  const auto many = make(spec, *data);
  Servers servers(spec, *few, 2);
  const auto samples = batch_of(*data, 0, 8);
  few->compute(*read_batch(*data, std::span(samples).first(2)), .25, 0);
  many->compute(*read_batch(*data, std::span(samples).subspan(2)), .75, 2);
  servers.apply({few->exchange(), many->exchange()}, 0, 2);
  for (std::size_t i = 0; i < few->exchange().size(); ++i) few->exchange()[i] += many->exchange()[i];
  few->apply(0, 2);
  servers.put(*many);
  EXPECT_EQ(state_of(*many), state_of(*few));
}

// Ten workers of a tenth each: floats add up to 1.0000001, rounded to the 1 that was trained.
TEST(Shards, CountBatchesOfSharesAsWholeNumbers) {
  const auto spec = small_resnet();
  const auto data = open(spec);
  const auto worker = make(spec, *data);
  Servers servers(spec, *worker, 2);
  const auto counters = worker->layout().counters;
  ASSERT_GT(counters, 1u);
  worker->compute(*read_batch(*data, batch_of(*data, 0, 8)), .1, 0);
  worker->finish_push(.1);
  const std::vector<std::span<const float>> pushes(10, worker->exchange());
  for (int step = 0; step < 5; ++step) servers.apply(pushes, step, 10);
  const auto weights = servers.weights();
  for (const float count : std::span(weights).last(counters)) EXPECT_EQ(count, 5);
  servers.pull(*worker);
  for (const auto& view : worker->model_state()) {
    if (view.dtype != "I64") continue;
    std::int64_t count = 0;
    std::memcpy(&count, view.bytes.data(), sizeof count);
    EXPECT_EQ(count, 5) << view.name;
  }
}

TEST(Shards, PulledIntoAnotherTrainerGiveTheSameLoss) {
  const auto spec = small_resnet();
  const auto pair = trained_both_ways(spec, 2, 4);
  auto other_seed = spec;
  other_seed.seed = 5;
  const auto other = make(other_seed, *pair.data);
  const auto samples = batch_of(*pair.data, 7, 8);
  EXPECT_NE(other->evaluate(*pair.data, samples)->loss_sum, pair.whole->evaluate(*pair.data, samples)->loss_sum);
  Servers(spec, *pair.whole, 3).pull(*other);
  EXPECT_EQ(other->compute(*read_batch(*pair.data, samples), 1, 0),
            pair.whole->compute(*read_batch(*pair.data, samples), 1, 0));
  EXPECT_EQ(other->evaluate(*pair.data, samples)->loss_sum, pair.whole->evaluate(*pair.data, samples)->loss_sum);
}

TEST(Shards, GoOnFromACopiedStateToTheBit) {
  auto spec = small_mlp();
  spec.optimiser = {.kind = Kind::adam, .rate = .01};
  const auto data = open(spec);
  const auto worker = make(spec, *data);
  const auto layout = worker->layout();
  const auto first = Shard::make(spec, layout, 1, 2);
  const auto second = Shard::make(spec, layout, 1, 2);
  first->take(*worker);
  worker->compute(*read_batch(*data, batch_of(*data, 0, 8)), 1, 0);
  worker->finish_push(1);
  const std::vector<std::span<const float>> push{
      std::span<const float>(worker->exchange()).subspan(first->range().first, first->range().count)};
  for (int step = 0; step < 3; ++step) first->apply(push, step, 1);
  EXPECT_FALSE(std::ranges::equal(first->state(), second->state()));
  ASSERT_EQ(first->state().size(), second->state().size());
  // 8 bytes of steps, weights and two moments, all parameters.
  EXPECT_EQ(first->state().size(), 8 + 3 * 4 * first->range().count);
  std::ranges::copy(first->state(), second->state().begin());
  first->apply(push, 3, 1);
  second->apply(push, 3, 1);
  EXPECT_TRUE(std::ranges::equal(first->state(), second->state()));
}

// 10 / 3: parts begin at 0, 3 and 6.
TEST(ShardRanges, CoverEverythingOnce) {
  EXPECT_EQ(shard_range(10, 0, 3), (ShardRange{0, 3}));
  EXPECT_EQ(shard_range(10, 1, 3), (ShardRange{3, 3}));
  EXPECT_EQ(shard_range(10, 2, 3), (ShardRange{6, 4}));
  EXPECT_EQ(shard_range(1, 0, 2), (ShardRange{0, 0}));
}

TrainSpec count_to_eight() {
  TrainSpec spec;
  spec.model.name = spec.data.name = "count";
  spec.data.samples = 8;
  spec.clip = 1;
  return spec;
}

// 4 samples added up: -1 each, norm 2. Half of the batch may have half of the norm: .5, so -.25 each.
TEST(Pushes, OfOneWorkerAreHeldToItsShareOfTheNorm) {
  auto spec = count_to_eight();
  spec.sum = true;
  const auto data = open(spec);
  const auto worker = make(spec, *data);
  worker->compute(*read_batch(*data, batch_of(*data, 0, 4)), .5, 0);
  EXPECT_EQ(worker->exchange()[0], -1);
  worker->finish_push(.5);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_NEAR(worker->exchange()[i], i < 4 ? -.25 : 0, 1e-6) << i;
}

// The mean of 4 samples: -1/4 each, times a share of a half -1/8; norm 1/4, less than .5.
TEST(Pushes, WithinTheNormStayAsTheyAre) {
  const auto spec = count_to_eight();
  const auto data = open(spec);
  const auto worker = make(spec, *data);
  worker->compute(*read_batch(*data, batch_of(*data, 0, 4)), .5, 0);
  worker->finish_push(.5);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(worker->exchange()[i], i < 4 ? -.125 : 0) << i;
}

struct Announced {
  std::size_t first = 0;
  std::vector<float> values{};
};

/// What compute() announces, as it was at that moment.
std::vector<Announced> announced(Trainer& trainer, const Dataset& data, double share) {
  std::vector<Announced> parts;
  const auto keep = [&](std::size_t first, std::size_t count) {
    const auto part = trainer.exchange().subspan(first, count);
    if (parts.empty()) {
      EXPECT_EQ(trainer.exchange()[0], 0) << "announced before the backward pass is at its end";
    }
    parts.push_back({first, {part.begin(), part.end()}});
  };
  trainer.compute(*read_batch(data, batch_of(data, 0, 8)), share, 0, keep);
  trainer.finish_push(share);
  return parts;
}

// Layers of 288 x 512, 512 x 512 and 512 x 4: the last is too small to go alone.
TEST(ReadyParts, AreFinalAndCoverTheParametersOnce) {
  const auto spec = pictures({.name = "mlp", .hidden = {512, 512}});
  const auto data = open(spec);
  const auto trainer = make(spec, *data);
  for (const double share : {1., .5}) {
    const auto parts = announced(*trainer, *data, share);
    ASSERT_EQ(parts.size(), 2u);
    auto end = trainer->layout().parameters;
    for (const auto& [first, values] : parts) {
      EXPECT_EQ(first + values.size(), end);
      end = first;
      EXPECT_GE(values.size(), 65536u);
      EXPECT_EQ(std::memcmp(values.data(), &trainer->exchange()[first], values.size() * sizeof(float)), 0) << first;
    }
    EXPECT_EQ(end, 0u);
  }
}

TEST(ReadyParts, LeaveOutStatisticsAndChangeNothing) {
  const auto spec = small_resnet();
  const auto data = open(spec);
  const auto watched = make(spec, *data);
  const auto unwatched = make(spec, *data);
  std::size_t total = 0;
  const auto samples = batch_of(*data, 0, 8);
  watched->compute(*read_batch(*data, samples), 1, 0, [&](std::size_t, std::size_t count) { total += count; });
  EXPECT_EQ(total, watched->layout().parameters);
  EXPECT_LT(total, watched->layout().size());
  unwatched->compute(*read_batch(*data, samples), 1, 0);
  EXPECT_TRUE(std::ranges::equal(watched->exchange(), unwatched->exchange()));
  watched->compute(*read_batch(*data, samples), 1, 0);
  EXPECT_EQ(total, watched->layout().parameters);
}

TEST(ReadyParts, AreNoneWhereANormIsToBeHeld) {
  auto spec = small_mlp();
  spec.clip = 1;
  const auto data = open(spec);
  EXPECT_TRUE(announced(*make(spec, *data), *data, 1).empty());
}

TEST(Moments, ComeBackAsTheyWereTaken) {
  auto spec = small_mlp();
  spec.optimiser = {.kind = Kind::adamw, .rate = .01};
  const auto data = open(spec);
  const auto trainer = make(spec, *data);
  trainer->compute(*read_batch(*data, batch_of(*data, 0, 8)), 1, 0);
  trainer->apply(0, 1);
  const auto moments = trainer->moments();
  ASSERT_EQ(moments.values.size(), 2u);
  EXPECT_EQ(moments.values[0].size(), trainer->layout().parameters);
  EXPECT_EQ(moments.steps, 1);
  const auto state = state_of(*trainer);
  trainer->set_moments({.values = {moments.values[1], moments.values[0]}, .steps = 7});
  EXPECT_NE(state_of(*trainer), state);
  trainer->set_moments(moments);
  EXPECT_EQ(state_of(*trainer), state);
}

}  // namespace
}  // namespace mayfly
