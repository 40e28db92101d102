#include <gtest/gtest.h>

#include "support/server_stage.h"

namespace mayfly {
namespace {

using How = ServersSpec::Sync;

/// Worker 1 has trained a step, with servers from 100 on.
struct Play : support::ServerStage {
  Play(ServersSpec spec, std::initializer_list<WorkerId> servers) : ServerStage(spec) {
    serve(servers);
    train(1);
    step();
  }
  void step() {
    ASSERT_TRUE(push(1));
    commit();
  }
};

TEST(LeavingServer, WithAStandbyGoesOnceWhatIsInHandCounts) {
  Play play({.count = 1, .standby = 1, .sync = How::asp}, {100, 101});
  const auto formation = play.crew.formation();
  play.crew.server_leaves(100);
  EXPECT_EQ(play.crew.formation(), formation);  // a lease is out
  EXPECT_TRUE(play.crew.stands(100));
  play.step();
  EXPECT_GT(play.crew.formation(), formation);
  EXPECT_EQ(play.crew.sample(), 16);
  EXPECT_FALSE(play.crew.stands(100));
  EXPECT_TRUE(play.crew.last_holders().empty());
  play.stand();
  EXPECT_EQ(play.last<Attach>(1).addresses, (std::vector<std::string>{"at 101"}));
  EXPECT_EQ(play.last<Lease>(1).sample, 16);
}

TEST(LeavingServer, OfAWaitingStepGoesBetweenSteps) {
  Play play({.count = 1, .standby = 1, .sync = How::bsp}, {100, 101});
  play.crew.server_leaves(101);
  EXPECT_TRUE(play.crew.stands(101));
  play.step();
  EXPECT_FALSE(play.crew.stands(101));
}

TEST(LeavingServer, HandsItsShardToANewcomerAndGoesInTheNextFormation) {
  Play play({.count = 1, .sync = How::asp}, {100});
  play.crew.server_leaves(100);
  EXPECT_EQ(play.crew.last_holders(), (std::vector<WorkerId>{100}));
  play.step();  // training goes on meanwhile
  play.crew.server_ready(102, "at 102");
  EXPECT_EQ(play.last<Serve>(102).source, "at 100");
  EXPECT_EQ(play.last<Serve>(102).sample, 16);
  const auto handing_over = play.crew.formation();
  for (const WorkerId server : {100, 102}) play.crew.hear(server, Formed{handing_over});
  EXPECT_EQ(play.crew.formation(), handing_over + 1);
  EXPECT_FALSE(play.crew.stands(100));
  EXPECT_TRUE(play.crew.last_holders().empty());
  play.stand();
  EXPECT_TRUE(play.crew.training());
  EXPECT_EQ(play.crew.sample(), 16);
  EXPECT_FALSE(play.crew.stateless());
  play.crew.gone(100);
  EXPECT_TRUE(play.crew.training());
}

TEST(LeavingServer, WhenAllServersOfAShardGoTheyStayUntilSomebodyComes) {
  Play play({.count = 1, .standby = 1, .sync = How::asp}, {100, 101});
  play.crew.server_leaves(100);
  play.crew.server_leaves(101);
  EXPECT_EQ(play.crew.last_holders(), (std::vector<WorkerId>{100, 101}));
  play.step();
  EXPECT_TRUE(play.crew.training());
  EXPECT_TRUE(play.crew.stands(100));
}

TEST(LeavingServer, IsNotWaitedForWhenTimeRunsOut) {
  Play play({.count = 1, .standby = 1, .sync = How::asp}, {100, 101});
  play.crew.server_leaves(100);
  play.crew.part();
  EXPECT_FALSE(play.crew.stands(100));
  EXPECT_EQ(play.crew.sample(), 8);
}

}  // namespace
}  // namespace mayfly
