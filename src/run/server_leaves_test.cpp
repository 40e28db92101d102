#include <gtest/gtest.h>

#include "run/server_crew.h"

namespace mayfly {
namespace {

using Sync = ServersSpec::Sync;

/// A crew whose workers and servers do what they are told. Servers are numbered from 100 on, workers from 1.
struct Play {
  explicit Play(ServersSpec servers) : crew({.servers = servers, .batch = 8}, 0) {}
  ServerCrew crew;
  std::vector<Crew::Letter> sent{};

  template <class M>
  M last(WorkerId id) {
    for (Crew::Letter& letter : crew.letters()) sent.push_back(std::move(letter));
    M found{};
    for (const Crew::Letter& letter : sent) {
      if (letter.to == id && std::holds_alternative<M>(letter.message)) found = std::get<M>(letter.message);
    }
    return found;
  }
  void stand() {
    for (const WorkerId server : crew.servers()) crew.hear(server, Formed{crew.formation()});
    for (const WorkerId worker : crew.ranks()) crew.hear(worker, Formed{crew.formation()});
  }
  void train(int servers) {
    for (WorkerId server = 100; server < 100 + servers; ++server)
      crew.server_ready(server, "at " + std::to_string(server));
    crew.arrived(1);
    ASSERT_TRUE(crew.assign(1, {1}, 0));
    crew.go_on(1000);
    stand();
    step();
  }
  void step() {
    const auto lease = last<Lease>(1);
    ASSERT_TRUE(crew.hear(1, Pushed{.formation = lease.formation, .lease = lease.lease, .sample = lease.sample}));
    crew.commit();
    crew.go_on(1000);
  }
};

TEST(LeavingServer, WithAStandbyGoesOnceWhatIsInHandCounts) {
  Play play({.count = 1, .sync = Sync::asp, .standby = 1});
  play.train(2);
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
  Play play({.count = 1, .sync = Sync::bsp, .standby = 1});
  play.train(2);
  play.crew.server_leaves(101);
  EXPECT_TRUE(play.crew.stands(101));
  play.step();
  EXPECT_FALSE(play.crew.stands(101));
}

TEST(LeavingServer, HandsItsShardToANewcomerAndGoesInTheNextFormation) {
  Play play({.count = 1, .sync = Sync::asp});
  play.train(1);
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
  Play play({.count = 1, .sync = Sync::asp, .standby = 1});
  play.train(2);
  play.crew.server_leaves(100);
  play.crew.server_leaves(101);
  EXPECT_EQ(play.crew.last_holders(), (std::vector<WorkerId>{100, 101}));
  play.step();
  EXPECT_TRUE(play.crew.training());
  EXPECT_TRUE(play.crew.stands(100));
}

TEST(LeavingServer, IsNotWaitedForWhenTimeRunsOut) {
  Play play({.count = 1, .sync = Sync::asp, .standby = 1});
  play.train(2);
  play.crew.server_leaves(100);
  play.crew.part();
  EXPECT_FALSE(play.crew.stands(100));
  EXPECT_EQ(play.crew.sample(), 8);
}

}  // namespace
}  // namespace mayfly
