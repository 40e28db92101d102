#include "run/server_crew.h"

#include <gtest/gtest.h>

#include <set>

#include "support/server_stage.h"

namespace mayfly {
namespace {

using How = ServersSpec::Sync;

TEST(ServerCrew, WaitsForAServerOfEveryShard) {
  support::ServerStage stage({.count = 2, .sync = How::asp});
  stage.serve({100});
  stage.train(1);
  EXPECT_TRUE(stage.to<Lease>(1).empty());
  EXPECT_FALSE(stage.crew.complete());
  stage.serve({101});
  stage.stand();
  EXPECT_EQ(stage.last<Serve>(100).shard, 0);
  EXPECT_EQ(stage.last<Serve>(101).shard, 1);
  EXPECT_TRUE(stage.last<Serve>(101).from_checkpoint);  // the first weights
  EXPECT_EQ(stage.last<Attach>(1).addresses, (std::vector<std::string>{"at 100", "at 101"}));
  EXPECT_EQ(stage.last<Lease>(1).samples, 8);
}

TEST(ServerCrew, WithoutWaitingEveryPushIsAnUpdateInTheOrderTheyCome) {
  support::ServerStage stage({.sync = How::asp});
  stage.serve({100});
  stage.train(2);
  EXPECT_EQ(stage.last<Lease>(2).first_sample, 8);
  const auto second = stage.push(2);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->range, (SampleRange{0, 8}));  // in the count of samples
  stage.commit();
  const auto commit = stage.last<Commit>(100);
  EXPECT_EQ(commit.from, 0);
  EXPECT_EQ(commit.sample, 8);
  EXPECT_EQ(commit.leases, (std::vector<std::int64_t>{2}));
  EXPECT_EQ(stage.crew.ledger().committed(), (std::vector<SampleRange>{{8, 8}}));
  EXPECT_EQ(stage.last<Lease>(2).first_sample, 16);
  EXPECT_EQ(stage.last<Lease>(2).sample, 8);  // what it pushed is in what it pulls
  // The first worker has computed with the state before that update.
  const auto first = stage.crew.hear(1, Pushed{.formation = stage.crew.formation(), .lease = 1, .compute_s = 1});
  ASSERT_TRUE(first);
  EXPECT_EQ(first->staleness, 1);
}

TEST(ServerCrew, AWorkersLossGivesItsSamplesToTheNext) {
  support::ServerStage stage({.sync = How::asp});
  stage.serve({100});
  stage.train(2);
  stage.crew.gone(1);
  EXPECT_EQ(stage.last<Forget>(100).leases, (std::vector<std::int64_t>{1}));
  stage.push(2);
  stage.commit();
  EXPECT_EQ(stage.last<Lease>(2).first_sample, 0);
  EXPECT_TRUE(stage.to<Halt>(2).size() <= 1);  // the other never stopped
}

TEST(ServerCrew, WhatALostWorkerHadPushedCounts) {
  support::ServerStage stage({.sync = How::bsp});
  stage.serve({100});
  stage.train(2);
  EXPECT_FALSE(stage.push(1));
  stage.crew.gone(1);
  const auto step = stage.push(2);
  ASSERT_TRUE(step);
  EXPECT_EQ(step->range.count, 8);
}

TEST(ServerCrew, AStepThatWaitsForAllIsDoneByThoseWhoAreLeft) {
  support::ServerStage stage({.sync = How::bsp});
  stage.serve({100});
  stage.train(2);
  EXPECT_EQ(stage.last<Lease>(1).samples, 4);
  EXPECT_DOUBLE_EQ(stage.last<Lease>(1).share, 0.5);
  EXPECT_FALSE(stage.push(2));
  EXPECT_EQ(stage.to<Lease>(2).size(), 1u);  // it waits
  stage.crew.gone(1);
  const auto rest = stage.last<Lease>(2);
  EXPECT_EQ(rest.first_sample, 0);
  EXPECT_EQ(rest.samples, 4);
  EXPECT_DOUBLE_EQ(rest.share, 0.5);
  const auto step = stage.push(2);
  ASSERT_TRUE(step);
  EXPECT_EQ(step->range, (SampleRange{0, 8}));
  stage.commit();
  EXPECT_EQ(stage.last<Commit>(100).leases.size(), 2u);
  EXPECT_EQ(stage.last<Lease>(2).samples, 8);
}

TEST(ServerCrew, BoundedStalenessHoldsBackWhoIsAhead) {
  support::ServerStage stage({.sync = How::ssp, .bound = 1});
  stage.serve({100});
  stage.train(2);
  for (int update = 0; update < 2; ++update) {
    ASSERT_TRUE(stage.push(1));
    stage.commit();
  }
  EXPECT_EQ(stage.to<Lease>(1).size(), 2u);  // two ahead of the other, and one is allowed
  ASSERT_TRUE(stage.push(2));
  stage.commit();
  EXPECT_EQ(stage.to<Lease>(1).size(), 3u);
}

TEST(ServerCrew, BoundedStalenessCountsANewcomerFromWhereTheOthersAre) {
  support::ServerStage stage({.sync = How::ssp, .bound = 1});
  stage.serve({100});
  stage.train(1);
  for (int update = 0; update < 5; ++update) {
    ASSERT_TRUE(stage.push(1));
    stage.commit();
  }
  stage.crew.arrived(2);
  ASSERT_TRUE(stage.crew.assign(side_by_side(2, {1, 2}, stage.crew.sample())));
  stage.crew.go_on(1000);
  stage.stand();
  const auto before = stage.to<Lease>(1).size();
  ASSERT_TRUE(stage.push(1));
  stage.commit();
  EXPECT_EQ(stage.to<Lease>(1).size(), before + 1);
}

// Both are to keep step. Worker 1 has done its update and waits for 2; its connection breaks, and it comes back.
TEST(ServerCrew, WhoComesBackIsAsFarAheadAsBefore) {
  support::ServerStage stage({.sync = How::ssp, .bound = 0});
  stage.serve({100});
  stage.train(2);
  ASSERT_TRUE(stage.push(1));
  stage.commit();
  ASSERT_EQ(stage.to<Lease>(1).size(), 1u);
  stage.crew.hear(1, Broken{.formation = stage.crew.formation()});
  ASSERT_TRUE(stage.crew.form_again());
  stage.crew.hear(1, Formed{stage.crew.formation()});
  EXPECT_EQ(stage.to<Lease>(1).size(), 1u);
  stage.crew.arrived(1, {});
  ASSERT_TRUE(stage.crew.form_again());
  stage.crew.hear(1, Formed{stage.crew.formation()});
  EXPECT_EQ(stage.to<Lease>(1).size(), 1u);
  ASSERT_TRUE(stage.push(2));
  stage.commit();
  EXPECT_EQ(stage.to<Lease>(1).size(), 2u);
}

// Worker 1 has done five updates when its connection breaks. 2 attaches while nobody is: it starts at five, or 1 would
// have to wait for it to catch up.
TEST(ServerCrew, ANewcomerThatFindsNobodyStartsWhereTheSlowestWas) {
  support::ServerStage stage({.sync = How::ssp, .bound = 1});
  stage.serve({100});
  stage.train(1);
  for (int update = 0; update < 5; ++update) {
    ASSERT_TRUE(stage.push(1));
    stage.commit();
  }
  stage.crew.hear(1, Broken{.formation = stage.crew.formation()});
  stage.crew.arrived(2);
  ASSERT_TRUE(stage.crew.assign(side_by_side(2, {1, 2}, stage.crew.sample())));
  stage.crew.go_on(1000);
  stage.crew.hear(2, Formed{stage.crew.formation()});
  const auto before = stage.to<Lease>(1).size();
  stage.crew.hear(1, Formed{stage.crew.formation()});
  EXPECT_EQ(stage.to<Lease>(1).size(), before + 1);
}

// 100 has its notice and stays all the same. 101 holds the shard, so 100 is in no formation any more, and 102, which
// comes next, is to fetch the shard from 101.
TEST(ServerCrew, AShardIsFetchedFromAServerThatStands) {
  support::ServerStage stage({.count = 1, .standby = 1, .sync = How::asp});
  stage.serve({100, 101});
  stage.train(1);
  stage.push(1);
  stage.commit();
  stage.crew.server_leaves(100);
  stage.stand();
  stage.serve({102});
  stage.stand();
  EXPECT_EQ(stage.last<Serve>(102).source, "at 101");
}

TEST(ServerCrew, AStandbyTakesOverWhatWasCommitted) {
  support::ServerStage stage({.count = 1, .standby = 1, .sync = How::asp});
  stage.serve({100, 101});
  stage.train(1);
  EXPECT_EQ(stage.last<Attach>(1).addresses, (std::vector<std::string>{"at 100", "at 101"}));
  stage.push(1);
  stage.commit();
  EXPECT_EQ(stage.last<Commit>(101).sample, 8);
  stage.crew.gone(100);
  EXPECT_FALSE(stage.crew.stateless());
  stage.stand();
  EXPECT_EQ(stage.crew.sample(), 8);
  EXPECT_EQ(stage.last<Serve>(101).sample, 8);
  EXPECT_FALSE(stage.last<Serve>(101).from_checkpoint);
  EXPECT_EQ(stage.last<Lease>(1).first_sample, 8);  // what was in hand is computed again
  // A new one is filled from it.
  stage.serve({102});
  EXPECT_EQ(stage.last<Serve>(102).source, "at 101");
}

TEST(ServerCrew, WithoutAStandbyTheStateIsLostAndAllShardsReturnToACheckpoint) {
  support::ServerStage stage({.count = 2, .sync = How::asp});
  stage.serve({100, 101});
  stage.train(1);
  stage.push(1);
  stage.commit();
  stage.crew.gone(101);
  EXPECT_TRUE(stage.crew.stateless());
  EXPECT_FALSE(stage.crew.assign(side_by_side(2, {1}, 8)));
  stage.crew.roll_back("checkpoint-0", 4, *Ledger::restored({{2, 4}}));
  EXPECT_FALSE(stage.crew.stateless());
  stage.serve({102});
  EXPECT_EQ(stage.last<Serve>(100).checkpoint, "checkpoint-0");
  EXPECT_EQ(stage.last<Serve>(102).checkpoint, "checkpoint-0");
  stage.stand();
  EXPECT_EQ(stage.last<Lease>(1).first_sample, 0);
  EXPECT_EQ(stage.last<Lease>(1).samples, 2);  // up to the gap's end
}

// It came while the first update was committed, and is placed anew before it has its shard.
TEST(ServerCrew, AServerHoldsNothingBeforeItSaysSo) {
  support::ServerStage stage({.count = 1, .standby = 2, .sync = How::asp});
  stage.serve({100});
  stage.train(1);
  stage.push(1);
  stage.commit();
  stage.serve({101, 102});
  EXPECT_EQ(stage.last<Serve>(101).source, "at 100");
  EXPECT_EQ(stage.last<Serve>(102).source, "at 100");
  EXPECT_TRUE(stage.to<Commit>(101).empty());
}

TEST(ServerCrew, AServerThatCannotGoOnIsNotBelievedToHoldItsShard) {
  support::ServerStage stage({.count = 1, .standby = 1, .sync = How::asp});
  stage.serve({100, 101});
  stage.train(1);
  stage.push(1);
  stage.commit();
  stage.crew.hear(101, Broken{stage.crew.formation(), "a commit that does not fit"});
  EXPECT_TRUE(stage.crew.broken());
  ASSERT_TRUE(stage.crew.form_again());
  EXPECT_EQ(stage.last<Serve>(101).source, "at 100");
}

TEST(ServerCrew, ACheckpointIsOfOneStateOfAllShards) {
  support::ServerStage stage({.count = 2, .sync = How::asp});
  stage.serve({100, 101});
  stage.train(1);
  stage.push(1);
  stage.commit();
  ASSERT_TRUE(stage.crew.write_checkpoint());
  const auto writer = stage.last<Save>(100), other = stage.last<Save>(101);
  EXPECT_EQ(writer.sample, 8);
  EXPECT_EQ(other.sample, 8);
  EXPECT_EQ(writer.addresses, (std::vector<std::string>{"at 100", "at 101"}));
  EXPECT_TRUE(other.addresses.empty());
  EXPECT_EQ(writer.ledger, (std::vector<std::int64_t>{0, 8}));
}

TEST(ServerCrew, IsRestoredWithItsGapsAndTellsServersWhatTheyMissed) {
  support::ServerStage stage({.sync = How::asp});
  stage.serve({100});
  stage.train(2);
  stage.push(2);  // samples 8 to 16, before the first eight
  const std::string record = stage.crew.record();
  ServerCrew later({.servers = {.sync = How::asp}, .batch = 8}, stage.crew.formation());
  later.restore(record, 8);
  EXPECT_EQ(later.ledger().committed(), (std::vector<SampleRange>{{8, 8}}));
  later.arrived(100, {.sample = 0});  // it never heard of the commit
  later.arrived(1);
  ASSERT_TRUE(later.assign(side_by_side(1, {1}, 8)));
  const auto letters = later.letters();
  const auto of_server = [](const Letter& letter) { return letter.to == 100; };
  auto told = std::find_if(letters.begin(), letters.end(), of_server);
  ASSERT_NE(told, letters.end());
  ASSERT_TRUE(std::holds_alternative<Commit>(told->message));
  EXPECT_EQ(std::get<Commit>(told->message).leases, (std::vector<std::int64_t>{2}));
  EXPECT_TRUE(std::holds_alternative<Serve>(std::next(told)->message));
}

// Of a step in three parts the second is left behind, and becomes lease 4.
TEST(ServerCrew, AStepOfSeveralLeasesIsRestoredWhole) {
  support::ServerStage stage({.sync = How::bsp});
  stage.serve({100});
  stage.train(3);
  stage.crew.gone(2);
  stage.push(1);
  stage.push(3);
  ASSERT_EQ(stage.last<Lease>(1).lease, 4);
  ASSERT_TRUE(stage.push(1));
  ServerCrew later({.servers = {.sync = How::bsp}, .batch = 8}, stage.crew.formation());
  later.restore(stage.crew.record(), 8);
  stage.commit();
  later.arrived(100, {.sample = 0});
  ASSERT_TRUE(later.assign(side_by_side(1, {1}, 8)));
  const auto letters = later.letters();
  const auto told = std::find_if(letters.begin(), letters.end(),
                                 [](const Letter& letter) { return std::holds_alternative<Commit>(letter.message); });
  ASSERT_NE(told, letters.end());
  EXPECT_EQ(std::get<Commit>(told->message), stage.last<Commit>(100));
  EXPECT_EQ(std::get<Commit>(told->message).leases, (std::vector<std::int64_t>{1, 3, 4}));
}

TEST(ServerCrew, StatesThatWereRolledBackMakeNothingStale) {
  support::ServerStage stage({.sync = How::asp});
  stage.serve({100});
  stage.train(1);
  for (int update = 0; update < 2; ++update) {
    stage.push(1);
    stage.commit();
  }
  stage.crew.roll_back("checkpoint-0", 8, *Ledger::restored({{0, 8}}));
  stage.stand();
  ASSERT_EQ(stage.last<Lease>(1).sample, 8);
  const auto step = stage.push(1);
  ASSERT_TRUE(step);
  EXPECT_EQ(step->staleness, 0);
}

TEST(ServerCrew, ARecordFromBeforeARollBackIsNotBelieved) {
  support::ServerStage stage({.sync = How::asp});
  stage.serve({100});
  stage.train(1);
  stage.push(1);
  ServerCrew later({.servers = {.sync = How::asp}, .batch = 8}, stage.crew.formation());
  later.restore(stage.crew.record(), 4);
  later.arrived(1);
  EXPECT_FALSE(later.assign(side_by_side(1, {1}, 4)));
}

TEST(ServerCrew, OneWorkerLooksAtTheValidationSetAndAnotherDoesWhereItIsLost) {
  support::ServerStage stage({.sync = How::asp});
  stage.serve({100});
  stage.train(2);
  stage.push(1);
  stage.crew.commit();
  stage.crew.go_on(1000, true);
  EXPECT_TRUE(stage.last<Lease>(1).evaluate);
  stage.crew.gone(1);
  stage.push(2);
  stage.commit();
  EXPECT_TRUE(stage.last<Lease>(2).evaluate);
}

// Workers come and go at random; what is committed is every sample below the end, once.
TEST(ServerCrew, EverySampleIsCommittedOnceWhateverHappens) {
  for (const How sync : {How::asp, How::bsp, How::ssp}) {
    for (unsigned seed = 1; seed <= 50; ++seed) {
      support::ServerStage stage({.count = 2, .standby = 1, .sync = sync, .bound = 2});
      stage.serve({100, 101, 102, 103});
      unsigned state = seed;
      const auto below = [&](unsigned n) { return (state = state * 1103515245U + 12345U) / 65536U % n; };
      std::set<WorkerId> alive{1, 2, 3};
      WorkerId last = 3, last_server = 103;
      std::int64_t generation = 1;
      for (const WorkerId worker : alive) stage.crew.arrived(worker);
      ASSERT_TRUE(stage.crew.assign(side_by_side(generation, {alive.begin(), alive.end()}, 0)));
      stage.crew.go_on(100);
      for (int turn = 0; turn < 2000 && stage.crew.sample() < 100; ++turn) {
        const unsigned what = below(12);
        if (what == 0 && alive.size() > 1) {
          stage.crew.gone(*alive.begin());
          alive.erase(alive.begin());
        } else if (what == 1 && alive.size() < 4) {
          alive.insert(++last);
          stage.crew.arrived(last);
        } else if (what == 2) {
          stage.crew.gone(stage.crew.servers()[below(2)]);
          if (stage.crew.stateless()) {
            ASSERT_FALSE(
                stage.crew.assign(side_by_side(++generation, {alive.begin(), alive.end()}, stage.crew.sample())));
            stage.crew.roll_back("", 0, {});
          }
          stage.serve({++last_server});
        } else if (!alive.empty()) {
          auto who = alive.begin();
          std::advance(who, below(static_cast<unsigned>(alive.size())));
          if (stage.push(*who)) stage.crew.commit();
          stage.crew.go_on(100);
        }
        if (what < 2) stage.crew.assign(side_by_side(++generation, {alive.begin(), alive.end()}, stage.crew.sample()));
        stage.stand();
      }
      EXPECT_EQ(stage.crew.ledger().committed(), (std::vector<SampleRange>{{0, 100}})) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace mayfly
