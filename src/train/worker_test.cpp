#include "train/worker.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>

#include "data/checkpoint.h"
#include "data/order.h"
#include "notice/mock.h"
#include "support/stage.h"

namespace mayfly {
namespace {

using support::Stage;

float total(const std::vector<float>& counts) {
  float sum = 0;
  for (const float count : counts) sum += count;
  return sum;
}

TEST(Worker, AnUpdateIsAppliedOnTheWordThatItCountsAndNeverElse) {
  Stage stage;
  for (const int slot : {0, 1}) stage.start(slot);
  for (const int slot : {0, 1}) EXPECT_EQ(stage.expect<Ready>(slot).samples, 12);
  stage.form(1, {0, 1}, {});
  stage.step({0, 1}, {.formation = 1, .committed = 0, .step = 0, .counts = {3, 1}});
  // The formation ends before the commit: the step is taken back.
  stage.form(2, {1, 0}, {});
  EXPECT_EQ(total(stage.counts(0, 2, 0)), 0);
  stage.step({1, 0}, {.formation = 2, .committed = 0, .step = 0, .counts = {2, 2}});
  // Committed, though its formation is over.
  stage.form(3, {0, 1}, {.sample = 4});
  stage.step({0, 1}, {.formation = 3, .committed = 4, .step = 1, .counts = {0, 4}});
  // A late word of an older formation changes nothing.
  stage.proceed({0, 1}, {.formation = 2, .committed = 8, .step = 2, .counts = {4, 0}});
  stage.step({0, 1}, {.formation = 3, .committed = 8, .step = 2, .counts = {1, 3}});
  stage.proceed({0, 1}, {.formation = 3, .committed = 12, .step = 3});
  for (const int slot : {0, 1}) EXPECT_EQ(stage.counts(slot, 3, 12), std::vector<float>(12, 1));
  for (const int slot : {0, 1}) stage.send(slot, Leave{});
  for (const int slot : {0, 1}) EXPECT_EQ(stage.exit_code(slot), Worker::kDone);
}

TEST(Worker, SaysWhatItHasReadAndWhatItHolds) {
  Stage stage;
  for (const int slot : {0, 1}) stage.start(slot);
  for (const int slot : {0, 1}) stage.expect<Ready>(slot);
  stage.form(1, {0, 1}, {});
  const SampleOrder order(12, static_cast<std::uint64_t>(stage.terms.seed));
  std::vector<std::string> earlier;
  for (int step = 0; step < 2; ++step) {
    const std::int64_t first = 4 * step;
    stage.proceed({0, 1}, {.formation = 1, .committed = first, .step = step, .counts = {3, 1}, .compare = true});
    const auto one = stage.expect<StepDone>(0), other = stage.expect<StepDone>(1);
    EXPECT_EQ(one.read, order.reading(first, 3));
    EXPECT_EQ(other.read, order.reading(first + 3, 1));
    ASSERT_TRUE(one.state && other.state);
    EXPECT_EQ(*one.state, *other.state);
    EXPECT_TRUE(one.state->front().starts_with("weight ")) << one.state->front();
    EXPECT_EQ(one.state->back(), fmt::format("step {}", step));
    EXPECT_NE(one.state->front(), step > 0 ? earlier.front() : "");
    earlier = *one.state;
  }
  for (const int slot : {0, 1}) stage.send(slot, Leave{});
}

TEST(Worker, TakesSamplesFromItsNeighboursCaches) {
  Stage stage;
  stage.terms.job.insert(stage.terms.job.find("samples: 12") + 11,
                         ", loader: {cache_mb: 1, partitioned: true, prep_threads: 1}");
  for (const int slot : {0, 1}) stage.start(slot);
  Neighbours neighbours{.workers = {0, 1}};
  for (const int slot : {0, 1}) neighbours.addresses.push_back(stage.expect<Ready>(slot).cache.value_or(""));
  for (const int slot : {0, 1}) stage.send(slot, neighbours);
  stage.form(1, {0, 1}, {});
  for (int step = 0; step < 12; ++step)
    stage.step({0, 1}, {.formation = 1, .committed = step * 4, .step = step, .counts = {2, 2}});
  stage.proceed({0, 1}, {.formation = 1, .committed = 48, .step = 12});
  EXPECT_EQ(stage.counts(0, 1, 48), std::vector<float>(12, 4));
  std::int64_t from_peers = 0;
  for (const int slot : {0, 1}) {
    stage.send(slot, Leave{});
    Fed fed;
    do fed = stage.expect<Fed>(slot);
    while (fed.prepared < 24 && !HasFailure());
    EXPECT_GE(fed.hits + fed.from_peers + fed.from_storage, 24);
    from_peers += fed.from_peers;
    EXPECT_EQ(stage.exit_code(slot), Worker::kDone);
  }
  EXPECT_GT(from_peers, 0);
}

TEST(Worker, SurvivorsGoOnWhenAPeerIsKilledOrFrozenAndANewcomerGetsTheState) {
  for (const bool frozen : {false, true}) {
    Stage stage;
    for (const int slot : {0, 1, 2}) stage.start(slot);
    for (const int slot : {0, 1, 2}) stage.expect<Ready>(slot);
    stage.form(1, {0, 1}, {});
    stage.step({0, 1}, {.formation = 1, .committed = 0, .step = 0, .counts = {2, 2}});
    frozen ? stage.freeze(1) : stage.kill(1);
    stage.proceed({0, 1}, {.formation = 1, .committed = 4, .step = 1, .counts = {2, 2}});
    if (!frozen) {
      EXPECT_EQ(stage.expect<Broken>(0).formation, 1);
    }
    stage.form(2, {2, 0}, {.sample = 4, .source = 1, .receivers = {0}});
    stage.step({2, 0}, {.formation = 2, .committed = 4, .step = 1, .counts = {3, 1}});
    if (frozen) ::kill(stage.processes[1], SIGCONT);  // a zombie goes on with what it was told last
    stage.step({2, 0}, {.formation = 2, .committed = 8, .step = 2, .counts = {3, 1}});
    stage.proceed({2, 0}, {.formation = 2, .committed = 12, .step = 3});
    for (const int slot : {2, 0}) EXPECT_EQ(stage.counts(slot, 2, 12), std::vector<float>(12, 1));
  }
}

TEST(Worker, SaysAgainWhatWasNotAnsweredWhenItsLineIsMended) {
  Stage stage;
  stage.start(0);
  const auto ready = stage.expect<Ready>(0);
  stage.hang_up(0);
  EXPECT_EQ(stage.expect<Ready>(0), ready);
  EXPECT_EQ(stage.hellos[0].worker, 0);
  stage.send(0, Form{.formation = 1, .size = 1});
  const auto reachable = stage.expect<Reachable>(0);
  stage.hang_up(0);
  EXPECT_EQ(stage.expect<Reachable>(0), reachable);
  stage.send(0, Peers{.formation = 1, .addresses = {reachable.address}});
  stage.expect<Formed>(0);
  stage.hang_up(0);
  EXPECT_EQ(stage.expect<Formed>(0).formation, 1);
  const Proceed lease{.formation = 1, .counts = {12}};
  stage.send(0, lease);
  const auto done = stage.expect<StepDone>(0);
  stage.hang_up(0);
  EXPECT_EQ(stage.expect<StepDone>(0), done);
  EXPECT_EQ(stage.hellos[0].sample, 0);
  stage.send(0, lease);  // a controller that does not know whether it said so
  EXPECT_EQ(stage.expect<StepDone>(0), done);
  stage.send(0, Proceed{.formation = 1, .committed = 12, .step = 1});
  EXPECT_EQ(stage.counts(0, 1, 12), std::vector<float>(12, 1));
}

TEST(Worker, RefusedItStartsAgainAsANewcomer) {
  Stage stage;
  stage.start(0);
  stage.expect<Ready>(0);
  stage.form(7, {0}, {});
  stage.step({0}, {.formation = 7, .counts = {12}});
  stage.refuses_known = true;
  stage.hang_up(0);
  stage.expect<Ready>(0);
  EXPECT_FALSE(stage.hellos[0].worker);
  stage.form(3, {0}, {});
  EXPECT_EQ(total(stage.counts(0, 3, 0)), 0);
}

TEST(Worker, AnOrphanSavesItsStateAndEnds) {
  Stage stage;
  stage.terms.orphan_s = 1;
  stage.start(0);
  stage.expect<Ready>(0);
  stage.form(1, {0}, {});
  stage.step({0}, {.formation = 1, .counts = {4}});
  stage.step({0}, {.formation = 1, .committed = 4, .step = 1, .counts = {4}});
  stage.silent = true;
  stage.hang_up(0);
  EXPECT_EQ(stage.exit_code(0), Worker::kOrphaned);
  const auto found = newest_checkpoint(stage.folder, {}).checkpoint;
  ASSERT_TRUE(found);
  EXPECT_EQ(found->state.sample, 4);  // the step whose word never came is not in it
}

TEST(Worker, SaysWhatItCannotDo) {
  Stage stage;
  stage.terms.job = "train: {model: {name: nonsense}}";
  stage.start(0);
  EXPECT_NE(stage.expect<Unable>(0).what.find("job.yaml"), std::string::npos);
  EXPECT_EQ(stage.exit_code(0), Worker::kUnable);
}

TEST(Worker, TellsThatItWillBeTakenAwayAndWorksOn) {
  Stage stage;
  stage.start(0);
  stage.expect<Ready>(0);
  stage.form(1, {0}, {});
  ::kill(stage.processes[0], SIGTERM);
  EXPECT_EQ(stage.expect<Leaving>(0).left_s, 30);
  stage.step({0}, {.formation = 1, .counts = {4}});
  for (int again = 0; again < 3; ++again) ::kill(stage.processes[0], SIGTERM);
  stage.step({0}, {.formation = 1, .committed = 4, .step = 1, .counts = {4}});
  stage.send(0, Leave{.why = "preempted"});
  EXPECT_EQ(stage.exit_code(0), Worker::kDone);
}

TEST(Worker, WatchesAMetadataServiceThatItIsToldOf) {
  const auto mock = MockMetadata::open({.cloud = Cloud::gcp}).value();
  mock->announce(Seconds(30));
  Stage stage;
  stage.start(0);
  stage.expect<Ready>(0);
  stage.send(0, Watch{.cloud = "gcp", .endpoint = "http://10.0.0.1"});  // not of this machine: not asked
  stage.send(0, Watch{.cloud = "gcp", .endpoint = mock->endpoint()});
  const auto leaving = stage.expect<Leaving>(0);
  EXPECT_EQ(leaving.left_s, 30);
  EXPECT_EQ(leaving.why, "gcp: preempted");
  // The machine's shutdown follows with a SIGTERM, which is no second notice.
  ::kill(stage.processes[0], SIGTERM);
  stage.form(1, {0}, {});
  stage.step({0}, {.formation = 1, .counts = {4}});
  stage.send(0, Leave{.why = "preempted"});
  EXPECT_EQ(stage.exit_code(0), Worker::kDone);
}

TEST(Worker, SaysThatItIsAtRiskAndThenWhenItEnds) {
  const auto mock = MockMetadata::open({.cloud = Cloud::aws}).value();
  mock->recommend_rebalance();
  Stage stage;
  stage.start(0);
  stage.expect<Ready>(0);
  stage.send(0, Watch{.cloud = "aws", .endpoint = mock->endpoint()});
  EXPECT_EQ(stage.expect<AtRisk>(0).why, "aws: rebalance recommendation");
  mock->announce(Seconds(100));
  EXPECT_EQ(stage.expect<Leaving>(0).why, "aws: terminate");
}

TEST(Worker, LeavesByItselfWhenItsTimeIsUp) {
  ::setenv("MAYFLY_NOTICE_S", "1", 1);
  Stage stage;
  stage.start(0);
  ::unsetenv("MAYFLY_NOTICE_S");
  stage.expect<Ready>(0);
  ::kill(stage.processes[0], SIGTERM);
  EXPECT_EQ(stage.expect<Leaving>(0).left_s, 1);
  EXPECT_EQ(stage.exit_code(0), Worker::kDone);
}

}  // namespace
}  // namespace mayfly
