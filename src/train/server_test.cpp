#include "train/server.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>

#include "base/file.h"
#include "data/checkpoint.h"
#include "support/stage.h"

namespace mayfly {
namespace {

using support::Stage;

/// Servers are slots 0, 1, ...; workers come behind them.
struct Play : Stage {
  int shards = 1;
  std::vector<std::string> addresses{};  ///< of the servers by slot
  std::vector<std::string> server_flags{}, worker_flags{};

  void start_all(int servers, int workers) {
    for (int slot = 0; slot < servers; ++slot) start(slot, "server", server_flags);
    for (int slot = servers; slot < servers + workers; ++slot) start(slot, "worker", worker_flags);
    for (int slot = 0; slot < servers; ++slot) {
      addresses.push_back(expect<Ready>(slot).address);
      EXPECT_EQ(hellos[slot].role, "server");
    }
    for (int slot = servers; slot < servers + workers; ++slot) expect<Ready>(slot);
  }
  void serve(int slot, Serve what) {
    what.shards = shards;
    send(slot, what);
    EXPECT_EQ(expect<Formed>(slot).formation, what.formation);
  }
  void attach(int slot, std::int64_t formation) {
    send(slot, Attach{.formation = formation, .shards = shards, .addresses = addresses});
    EXPECT_EQ(expect<Formed>(slot).formation, formation);
  }
  void commit(const Commit& what) {
    for (int slot = 0; slot < static_cast<int>(addresses.size()); ++slot) send(slot, what);
  }
  /// Has the servers in these slots, one of each shard, save; the first writes.
  std::vector<float> saved(const std::vector<int>& slots, Save what) {
    for (const int slot : slots) {
      auto one = what;
      if (slot == slots.front()) {
        for (const int other : slots) one.addresses.push_back(addresses[other]);
      }
      send(slot, one);
    }
    return counts_in(expect<CheckpointWritten>(slots.front()), what.sample);
  }
};

TEST(Server, EverySampleIsInTheWeightsOnceHoweverLeasesCount) {
  Play play;
  play.shards = 2;
  play.start_all(2, 2);
  play.serve(0, {.formation = 1, .shard = 0, .from_checkpoint = true});
  play.serve(1, {.formation = 1, .shard = 1, .from_checkpoint = true});
  for (const int slot : {2, 3}) play.attach(slot, 1);
  play.send(2, Lease{.formation = 1, .lease = 1, .first_sample = 0, .samples = 4});
  play.send(3, Lease{.formation = 1, .lease = 2, .first_sample = 4, .samples = 2});
  const auto first = play.expect<Pushed>(2);
  EXPECT_EQ(first.lease, 1);
  EXPECT_EQ(first.sample, 0);
  EXPECT_EQ(play.expect<Pushed>(3).lease, 2);
  play.commit({.formation = 1, .from = 0, .sample = 2, .leases = {2}});
  play.commit({.formation = 1, .from = 2, .sample = 6, .leases = {1}, .step = 1});
  // One that will never count, and whose samples another takes over.
  play.send(2, Lease{.formation = 1, .lease = 3, .sample = 6, .first_sample = 6, .samples = 6});
  EXPECT_EQ(play.expect<Pushed>(2).sample, 6);
  for (const int slot : {0, 1}) play.send(slot, Forget{.formation = 1, .leases = {3}});
  play.send(3, Lease{.formation = 1, .lease = 4, .sample = 6, .first_sample = 6, .samples = 6});
  play.expect<Pushed>(3);
  play.commit({.formation = 1, .from = 6, .sample = 12, .leases = {4}, .step = 2});
  EXPECT_EQ(play.saved({1, 0}, {.formation = 1, .sample = 12, .step = 3, .ledger = {0, 12}}),
            std::vector<float>(12, 1));
  const auto found = newest_checkpoint(play.folder, {}).checkpoint;
  ASSERT_TRUE(found);
  EXPECT_EQ(found->state.ledger, (std::vector<SampleRange>{{0, 12}}));
  for (const int slot : {0, 1, 2, 3}) play.send(slot, Leave{});
  for (const int slot : {0, 1, 2, 3}) EXPECT_EQ(play.exit_code(slot), Member::kDone);
}

TEST(Server, ANewOneTakesTheStateOfItsSiblingWhenAServerIsKilled) {
  Play play;
  play.start_all(3, 1);
  for (const int slot : {0, 1}) play.serve(slot, {.formation = 1, .from_checkpoint = true});
  const auto spare = play.addresses.back();
  play.addresses.pop_back();
  play.attach(3, 1);
  play.send(3, Lease{.formation = 1, .lease = 1, .samples = 4});
  play.expect<Pushed>(3);
  play.commit({.formation = 1, .from = 0, .sample = 4, .leases = {1}});
  play.send(3, Lease{.formation = 1, .lease = 2, .sample = 4, .first_sample = 4, .samples = 4});
  play.expect<Pushed>(3);
  play.kill(0);
  // Lease 2 was staged in formation 1 and does not count in the next. The newcomer asks before its source has begun.
  play.addresses = {spare, play.addresses[1]};
  play.send(2, Serve{.formation = 2, .sample = 4, .source = play.addresses[1]});
  play.send(1, Serve{.formation = 2, .sample = 4});
  for (const int slot : {1, 2}) EXPECT_EQ(play.expect<Formed>(slot).formation, 2);
  play.attach(3, 2);
  play.send(3, Lease{.formation = 2, .lease = 1, .sample = 4, .first_sample = 4, .samples = 8});
  EXPECT_EQ(play.expect<Pushed>(3).sample, 4);
  for (const int slot : {1, 2})
    play.send(slot, Commit{.formation = 2, .from = 4, .sample = 12, .leases = {1}, .step = 1});
  for (const int slot : {1, 2}) {
    play.send(slot, Save{.formation = 2, .sample = 12, .step = 2, .ledger = {0, 12}, .addresses = {"itself"}});
    EXPECT_EQ(Stage::counts_in(play.expect<CheckpointWritten>(slot), 12), std::vector<float>(12, 1));
  }
}

TEST(Server, GoesOnFromACheckpointUnderAnotherNumberOfShards) {
  Play play;
  // As machines that are emulated: slower, but with the same outcome.
  play.server_flags = {"--network", "1Gbit/s"};
  play.worker_flags = {"--network", "50MB/s", "--cpu-share", "0.5"};
  play.start_all(2, 1);
  play.serve(0, {.formation = 1, .from_checkpoint = true});
  const auto both = play.addresses;
  play.addresses = {both[0]};
  play.attach(2, 1);
  play.send(2, Lease{.formation = 1, .lease = 1, .samples = 5});
  play.expect<Pushed>(2);
  play.commit({.formation = 1, .from = 0, .sample = 5, .leases = {1}});
  const auto part = play.saved({0}, {.formation = 1, .sample = 5, .step = 1, .ledger = {0, 5}});
  EXPECT_EQ(std::count(part.begin(), part.end(), 1.0F), 5);
  const auto path = newest_checkpoint(play.folder, {}).checkpoint->path.string();
  play.addresses = both;
  play.shards = 2;
  for (const int slot : {0, 1})
    play.serve(slot, {.formation = 2, .shard = slot, .sample = 5, .checkpoint = path, .from_checkpoint = true});
  play.attach(2, 2);
  play.send(2, Lease{.formation = 2, .lease = 1, .sample = 5, .first_sample = 5, .samples = 7});
  play.expect<Pushed>(2);
  play.commit({.formation = 2, .from = 5, .sample = 12, .leases = {1}, .step = 1});
  EXPECT_EQ(play.saved({0, 1}, {.formation = 2, .sample = 12, .step = 2, .ledger = {0, 12}}),
            std::vector<float>(12, 1));
}

constexpr const char* kDigitsJob = R"(name: digits
train:
  model: {name: mlp, hidden: [16]}
  data: {name: digits, samples: 64}
  validation: {name: digits, samples: 32, seed: 2}
  optimiser: {kind: adam, rate: 0.01}
  batch: 16
)";

std::string bytes_of(const std::string& folder, const char* file) {
  return load_text(std::filesystem::path(folder) / file).value();
}

TEST(Server, TheSameStepsEndInTheSameBitsAsWithoutServers) {
  Stage stage;
  stage.terms.job = kDigitsJob;
  stage.start(0);
  stage.expect<Ready>(0);
  stage.form(1, {0}, {});
  StepDone look;
  for (int step = 0; step < 3; ++step) {
    stage.send(0, Proceed{.formation = 1, .committed = 16 * step, .step = step, .counts = {16}, .evaluate = step == 2});
    look = stage.expect<StepDone>(0);
  }
  stage.send(0, Proceed{.formation = 1, .committed = 48, .step = 3});
  stage.send(0, WriteCheckpoint{.formation = 1});
  const auto wanted = stage.expect<CheckpointWritten>(0);

  Play play;
  play.terms.job = kDigitsJob;
  play.shards = 2;
  play.start_all(2, 1);
  for (const int slot : {0, 1}) play.serve(slot, {.formation = 1, .shard = slot, .from_checkpoint = true});
  play.attach(2, 1);
  for (int step = 0; step < 3; ++step) {
    const std::int64_t first = 16 * step;
    play.send(2, Lease{.formation = 1,
                       .lease = step,
                       .sample = first,
                       .first_sample = first,
                       .samples = 16,
                       .evaluate = step == 2});
    const auto pushed = play.expect<Pushed>(2);
    EXPECT_EQ(pushed.sample, first);
    if (step == 2) {
      EXPECT_EQ(pushed.loss, look.loss);
      EXPECT_EQ(pushed.validation_loss, look.validation_loss);
      EXPECT_EQ(pushed.accuracy, look.accuracy);
      EXPECT_TRUE(pushed.accuracy);
    }
    play.commit({.formation = 1, .from = first, .sample = first + 16, .leases = {step}, .step = step});
  }
  const Save save{.formation = 1, .sample = 48, .step = 3, .loss = look.loss, .ledger = {0, 48}};
  play.send(1, save);
  auto writes = save;
  writes.addresses = play.addresses;
  play.send(0, writes);
  const auto written = play.expect<CheckpointWritten>(0);
  for (const auto* file : {"model.safetensors", "optimizer.safetensors", "trainer_state.json"})
    EXPECT_EQ(bytes_of(written.path, file), bytes_of(wanted.path, file)) << file;
}

TEST(Server, SaysWhatDoesNotFitAndWhatItCannotDo) {
  Play play;
  play.start_all(1, 1);
  play.send(0, Serve{.formation = 1, .sample = 8});  // neither in hand nor to be had
  EXPECT_EQ(play.expect<Broken>(0).formation, 1);
  play.send(0, Serve{.formation = 2, .sample = 8, .source = "127.0.0.1:1"});
  EXPECT_EQ(play.expect<Broken>(0).formation, 2);
  play.serve(0, {.formation = 3, .from_checkpoint = true});
  play.commit({.formation = 3, .from = 0, .sample = 4, .leases = {1}});
  EXPECT_NE(play.expect<Broken>(0).what.find("lease 1"), std::string::npos);
  play.commit({.formation = 2, .from = 0, .sample = 4, .leases = {1}});  // of an older one: no answer
  play.send(1, Attach{.formation = 3, .addresses = {"127.0.0.1:1"}});
  EXPECT_EQ(play.expect<Broken>(1).formation, 3);
  play.attach(1, 3);
  play.send(0, Serve{.formation = 4, .sample = 8, .checkpoint = "/nowhere", .from_checkpoint = true});
  EXPECT_NE(play.expect<Unable>(0).what.find("/nowhere"), std::string::npos);
  EXPECT_EQ(play.exit_code(0), Member::kUnable);
}

TEST(Server, AWorkerSaysThatAServerIsGoneAndHaltEndsItsWaiting) {
  Play play;
  play.start_all(1, 1);
  play.serve(0, {.formation = 1, .from_checkpoint = true});
  play.attach(1, 1);
  play.freeze(0);
  play.send(1, Lease{.formation = 1, .lease = 1, .samples = 4});
  play.send(1, Halt{.formation = 1});
  EXPECT_EQ(play.expect<Broken>(1).formation, 1);
  ::kill(play.processes[0], SIGCONT);
  play.serve(0, {.formation = 2});
  play.attach(1, 2);
  play.kill(0);
  play.send(1, Lease{.formation = 2, .lease = 1, .samples = 4});
  EXPECT_EQ(play.expect<Broken>(1).formation, 2);
}

TEST(Server, BothSayAgainWhatWasNotAnsweredWhenTheirLineIsMended) {
  Play play;
  play.start_all(1, 1);
  play.serve(0, {.formation = 1, .from_checkpoint = true});
  play.hang_up(0);
  EXPECT_EQ(play.expect<Formed>(0).formation, 1);
  EXPECT_EQ(play.hellos[0].sample, 0);
  EXPECT_EQ(play.hellos[0].role, "server");
  play.attach(1, 1);
  const Lease lease{.formation = 1, .lease = 1, .samples = 12};
  play.send(1, lease);
  const auto pushed = play.expect<Pushed>(1);
  play.hang_up(1);
  EXPECT_EQ(play.expect<Pushed>(1), pushed);
  play.send(1, lease);  // a controller that does not know whether it said so
  EXPECT_EQ(play.expect<Pushed>(1), pushed);
  const Commit commit{.formation = 1, .from = 0, .sample = 12, .leases = {1}};
  play.commit(commit);
  play.commit(commit);
  EXPECT_EQ(play.saved({0}, {.formation = 1, .sample = 12, .step = 1, .ledger = {0, 12}}), std::vector<float>(12, 1));
}

}  // namespace
}  // namespace mayfly
