#include <gtest/gtest.h>

#include <cstring>
#include <future>
#include <numeric>
#include <thread>

#include "base/rng.h"
#include "support/plain_shard.h"
#include "support/token.h"
#include "train/data_link.h"
#include "train/shard_client.h"
#include "train/shard_server.h"
#include "train/state_fetch.h"

namespace mayfly {
namespace {

using support::PlainShard;
using Floats = std::vector<float>;

/// Servers of one formation, in this process; server i holds shard i % shards.
struct Fleet {
  int shards = 1;
  std::size_t size = 0;
  Credentials credentials;
  std::int64_t formation = 1;
  std::vector<std::unique_ptr<ShardServer>> servers{};

  Fleet(int shard_count, int copies, std::size_t floats, Credentials its = support::known())
      : shards(shard_count), size(floats), credentials(std::move(its)) {
    for (int i = 0; i < shards * copies; ++i)
      servers.push_back(std::move(ShardServer::open({.credentials = credentials}).value()));
    begin(1);
  }
  void begin(std::int64_t number, std::int64_t sample = 0) {
    formation = number;
    for (std::size_t i = 0; i < servers.size(); ++i)
      servers[i]->begin(number, std::make_unique<PlainShard>(size, static_cast<int>(i) % shards, shards), sample);
  }
  std::vector<std::string> addresses() const {
    std::vector<std::string> all;
    for (const auto& server : servers) all.push_back(server->address());
    return all;
  }
  std::unique_ptr<ShardClient> unconnected(int worker) const { return unconnected(worker, credentials); }
  std::unique_ptr<ShardClient> unconnected(int worker, const Credentials& its) const {
    return ShardClient::make({.formation = formation,
                              .shards = shards,
                              .addresses = addresses(),
                              .credentials = its,
                              .size = size,
                              .worker = worker});
  }
  std::unique_ptr<ShardClient> client(int worker = 0) const {
    auto made = unconnected(worker);
    const auto connected = made->connect();
    EXPECT_TRUE(connected) << connected.error().message;
    return made;
  }
  void commit(std::int64_t from, std::int64_t sample, const std::vector<std::int64_t>& leases) {
    for (auto& server : servers) {
      const auto applied = server->commit({.formation = formation, .from = from, .sample = sample, .leases = leases});
      EXPECT_TRUE(applied) << applied.error().message;
    }
  }
};

void push(ShardClient& client, std::int64_t lease, const Floats& values) {
  client.begin_push(lease, values);
  const auto pushed = client.finish_push();
  EXPECT_TRUE(pushed) << pushed.error().message;
}

Floats pulled(ShardClient& client, std::int64_t sample, std::size_t size) {
  Floats weights(size, -1);
  const auto state = client.pull(sample, weights);
  EXPECT_TRUE(state) << state.error().message;
  EXPECT_GE(state.value_or(-1), sample);
  return weights;
}

DataLink& connected(DataLink& link, const ShardServer& server) {
  EXPECT_TRUE(link.connect(server.address(), Seconds(5)));
  return link;
}

TEST(Shards, WhatIsCommittedIsPulledAndNothingElse) {
  Fleet fleet(3, 1, 1000);
  const auto worker = fleet.client(0), other = fleet.client(1);
  Floats ramp(1000);
  std::iota(ramp.begin(), ramp.end(), 1.0F);
  push(*worker, 7, ramp);
  push(*other, 8, Floats(1000, 0.5F));
  EXPECT_EQ(pulled(*worker, 0, 1000), Floats(1000, 0));
  fleet.commit(0, 4, {7});
  EXPECT_EQ(pulled(*other, 4, 1000), ramp);
  for (auto& server : fleet.servers) server->forget({.formation = 1, .leases = {8}});
  EXPECT_FALSE(fleet.servers[0]->commit({.formation = 1, .from = 4, .sample = 8, .leases = {8}}));
  EXPECT_FALSE(fleet.servers[0]->commit({.formation = 1, .from = 0, .sample = 8, .leases = {7}}));
  EXPECT_EQ(fleet.servers[0]->sample(), 4);
}

TEST(Shards, CarryTheSameWhereTheyAreEncrypted) {
  constexpr std::size_t kFloats = 300'000;  // many records of TLS a message
  Fleet fleet(2, 2, kFloats, support::sealed());
  const auto worker = fleet.client();
  Floats ramp(kFloats);
  std::iota(ramp.begin(), ramp.end(), 1.0F);
  push(*worker, 7, ramp);
  fleet.commit(0, 4, {7});
  EXPECT_EQ(pulled(*worker, 4, kFloats), ramp);
  EXPECT_FALSE(fleet.unconnected(0, support::known())->connect());
  EXPECT_FALSE(fleet.unconnected(0, support::sealed())->connect());
}

TEST(Shards, WhatIsForgottenBeforeItComesDoesNotStay) {
  Fleet fleet(1, 1, 100);
  const auto worker = fleet.client();
  fleet.servers[0]->forget({.formation = 1, .leases = {5}});
  push(*worker, 5, Floats(100, 1));
  EXPECT_FALSE(fleet.servers[0]->commit({.formation = 1, .from = 0, .sample = 1, .leases = {5}}));
  push(*worker, 6, Floats(100, 2));
  fleet.commit(0, 1, {6});
  EXPECT_EQ(pulled(*worker, 1, 100), Floats(100, 2));
}

TEST(Shards, PartsThatAreReadyGoAheadInAnyOrder) {
  Fleet fleet(2, 1, 1001);
  const auto worker = fleet.client();
  Floats values(1001);
  std::iota(values.begin(), values.end(), 0.0F);
  worker->begin_push(1, values);
  worker->push(900, 101);
  worker->push(300, 600);  // over the border of the shards
  worker->push(10, 20);
  const auto pushed = worker->finish_push();
  ASSERT_TRUE(pushed) << pushed.error().message;
  fleet.commit(0, 1, {1});
  EXPECT_EQ(pulled(*worker, 1, 1001), values);
}

TEST(Shards, MoreServersThanParametersDoNoHarm) {
  Fleet fleet(3, 1, 2);
  const auto worker = fleet.client();
  push(*worker, 1, {1, 2});
  fleet.commit(0, 1, {1});
  EXPECT_EQ(pulled(*worker, 1, 2), (Floats{1, 2}));
}

TEST(Shards, APullWaitsForTheStateItAsksFor) {
  Fleet fleet(2, 1, 100);
  const auto worker = fleet.client();
  push(*worker, 1, Floats(100, 3));
  auto weights = std::async(std::launch::async, [&] { return pulled(*worker, 5, 100); });
  EXPECT_EQ(weights.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  fleet.commit(0, 5, {1});
  EXPECT_EQ(weights.get(), Floats(100, 3));
}

// Every worker pushes a constant, so that a pull of half one state and half another has two values in it.
TEST(Shards, APullSeesOneStateThoughUpdatesGoOn) {
  constexpr std::size_t kSize = 1 << 20;
  Fleet fleet(1, 1, kSize);
  std::atomic<bool> over = false;
  std::vector<std::thread> readers;
  std::atomic<int> pulls = 0;
  for (int worker = 0; worker < 3; ++worker)
    readers.emplace_back([&, worker] {
      const auto client = fleet.client(worker);
      while (!over) {
        const auto weights = pulled(*client, 0, kSize);
        ASSERT_EQ(std::count(weights.begin(), weights.end(), weights[0]), static_cast<std::ptrdiff_t>(kSize));
        ++pulls;
      }
    });
  const auto writer = fleet.client(9);
  for (std::int64_t step = 0; (step < 30 || pulls < 30) && !::testing::Test::HasFailure(); ++step) {
    push(*writer, step, Floats(kSize, 1));
    fleet.commit(step, step + 1, {step});
  }
  over = true;
  for (auto& reader : readers) reader.join();
}

TEST(Shards, ReplicasAreEqualToTheBitAfterASeriesOfUpdates) {
  constexpr std::size_t kSize = 5003;
  Fleet fleet(2, 2, kSize);
  std::vector<std::unique_ptr<ShardClient>> workers;
  for (int worker = 0; worker < 3; ++worker) workers.push_back(fleet.client(worker));
  Rng rng(5);
  for (std::int64_t step = 0; step < 20; ++step) {
    std::vector<Floats> gradients;
    for (int worker = 0; worker < 3; ++worker) {
      auto& gradient = gradients.emplace_back(kSize);
      for (auto& value : gradient) value = static_cast<float>(rng.uniform() - 0.5);
    }
    std::vector<std::thread> pushes;
    for (std::size_t worker = 0; worker < 3; ++worker)
      pushes.emplace_back(
          [&, worker] { push(*workers[worker], step * 3 + static_cast<std::int64_t>(worker), gradients[worker]); });
    for (auto& thread : pushes) thread.join();
    fleet.commit(step, step + 1, {step * 3 + 2, step * 3, step * 3 + 1});
  }
  // Workers 0 and 1 pull from different servers of each shard.
  const auto one = pulled(*workers[0], 20, kSize), two = pulled(*workers[1], 20, kSize);
  EXPECT_EQ(std::memcmp(one.data(), two.data(), kSize * sizeof(float)), 0);
  EXPECT_NE(one, Floats(kSize, 0));
}

TEST(Shards, AWorkerThatVanishesLosesOnlyWhatItHadNotFinished) {
  Fleet fleet(1, 1, 100);
  auto worker = fleet.client();
  push(*worker, 1, Floats(100, 1));
  const Floats half(50, 9);
  {
    DataLink link(support::known(), nullptr);
    ASSERT_TRUE(greet(connected(link, *fleet.servers[0]), 1));
    // Says that 100 floats follow, and goes after 50.
    const DataHeader header{.kind = DataHeader::Kind::push, .formation = 1, .number = 2, .count = 100};
    ASSERT_TRUE(link.send(header, std::as_bytes(std::span(half))));
  }
  worker.reset();
  const auto other = fleet.client();
  EXPECT_FALSE(fleet.servers[0]->commit({.formation = 1, .from = 0, .sample = 1, .leases = {1, 2}}));
  fleet.commit(0, 1, {1});
  EXPECT_EQ(pulled(*other, 1, 100), Floats(100, 1));
}

TEST(Shards, StrangersAndNonsenseAreTurnedAwayAndTheOthersGoOn) {
  Fleet fleet(1, 1, 100);
  const auto worker = fleet.client();
  for (const auto& stranger : {Credentials(), support::sealed()})
    EXPECT_FALSE(fleet.unconnected(0, stranger)->connect());
  const auto dropped = [&](const DataHeader& header, bool greets) {
    DataLink link(support::known(), nullptr);
    connected(link, *fleet.servers[0]);
    EXPECT_EQ(greets, greets && greet(link, 1).has_value());
    EXPECT_TRUE(link.send(header));
    const auto answer = link.receive();
    return !answer || !*answer;
  };
  using Kind = DataHeader::Kind;
  EXPECT_TRUE(dropped({.magic = 0x2050'5448, .kind = Kind::hello}, false));
  EXPECT_TRUE(dropped({.kind = Kind::hello, .formation = 1, .count = SIZE_MAX}, false));
  EXPECT_TRUE(dropped({.kind = Kind::pull, .formation = 1}, false));
  EXPECT_TRUE(dropped({.kind = Kind::push, .formation = 1, .first = 1, .count = 100}, true));
  EXPECT_TRUE(dropped({.kind = Kind::push, .formation = 1, .first = 1, .count = SIZE_MAX}, true));
  EXPECT_TRUE(dropped({.kind = Kind::pull, .formation = 2}, true));
  EXPECT_TRUE(dropped({.kind = Kind::fetch, .formation = 1, .count = 399}, true));
  EXPECT_TRUE(dropped({.kind = static_cast<Kind>(99), .formation = 1}, true));
  push(*worker, 1, Floats(100, 1));
  fleet.commit(0, 1, {1});
  EXPECT_EQ(pulled(*worker, 1, 100), Floats(100, 1));
}

TEST(Shards, ANewFormationTurnsOutTheOldOneAndForgetsWhatItPushed) {
  Fleet fleet(1, 1, 100);
  const auto old = fleet.client();
  push(*old, 1, Floats(100, 1));
  fleet.begin(2, 40);
  EXPECT_FALSE(fleet.servers[0]->commit({.formation = 2, .from = 40, .sample = 41, .leases = {1}}));
  Floats weights(100);
  EXPECT_FALSE(old->pull(0, weights));
  const auto worker = fleet.client();
  push(*worker, 1, Floats(100, 2));
  fleet.commit(40, 41, {1});
  EXPECT_EQ(pulled(*worker, 41, 100), Floats(100, 2));
}

TEST(Shards, AbortEndsEveryWait) {
  Fleet fleet(2, 1, 100);
  const auto worker = fleet.client();
  Floats weights(100);
  auto waiting = std::async(std::launch::async, [&] { return worker->pull(5, weights); });
  EXPECT_EQ(waiting.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  worker->abort();
  EXPECT_FALSE(waiting.get());
  worker->begin_push(1, weights);
  EXPECT_FALSE(worker->finish_push());
  // A formation that has not begun is waited for, but not for ever.
  fleet.formation = 2;
  const auto early = fleet.unconnected(0);
  auto connecting = std::async(std::launch::async, [&] { return early->connect(); });
  EXPECT_EQ(connecting.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  early->abort();
  EXPECT_FALSE(connecting.get());
}

TEST(StateFetch, GetsACopyThatWasKeptThoughTheServerWentOn) {
  Fleet fleet(1, 1, 100);
  const auto worker = fleet.client();
  push(*worker, 1, Floats(100, 1));
  push(*worker, 2, Floats(100, 1));
  fleet.commit(0, 1, {1});
  fleet.servers[0]->keep_copy();
  fleet.commit(1, 2, {2});
  const auto fetched = [&](std::int64_t formation, std::int64_t sample) {
    StateFetch fetch(support::known(), nullptr);
    Floats state(100);
    const auto got =
        fetch.fetch(fleet.servers[0]->address(), formation, sample, std::as_writable_bytes(std::span(state)));
    return got ? std::optional(state) : std::nullopt;
  };
  EXPECT_EQ(fetched(1, 1), Floats(100, 1));
  EXPECT_EQ(fetched(1, 2), Floats(100, 2));
  EXPECT_EQ(fetched(1, 0), std::nullopt);  // past
  fleet.servers[0]->keep_copy();
  EXPECT_EQ(fetched(1, 2), Floats(100, 2));
  EXPECT_EQ(fetched(1, 1), std::nullopt);  // dropped for the newer one
  // Who is early waits: for the formation, and for the state.
  auto early = std::async(std::launch::async, [&] { return fetched(2, 6); });
  EXPECT_EQ(early.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  fleet.servers[0]->begin(2, nullptr, 0);
  fleet.begin(2, 5);
  EXPECT_EQ(early.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  const auto other = fleet.client();
  push(*other, 1, Floats(100, 7));
  fleet.commit(5, 6, {1});
  EXPECT_EQ(early.get(), Floats(100, 7));
}

TEST(StateFetch, AbortEndsIt) {
  Fleet fleet(1, 1, 100);
  StateFetch fetch(support::known(), nullptr);
  std::vector<std::byte> state(400);
  auto waiting =
      std::async(std::launch::async, [&] { return fetch.fetch(fleet.servers[0]->address(), 1, 8, state).has_value(); });
  EXPECT_EQ(waiting.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  fetch.abort();
  EXPECT_FALSE(waiting.get());
}

}  // namespace
}  // namespace mayfly
