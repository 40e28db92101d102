// An independent check of how workers share a server: SimGrid's flow-level network against the closed queue.
#include <gtest/gtest.h>
#include <simgrid/s4u.hpp>

#include <cmath>
#include <random>
#include <vector>

#include "predict/closed_queue.h"

namespace mayfly {
namespace {

namespace sg = simgrid::s4u;

struct WorkerClass {
  double think = 0;
  int count = 0;
};

/// Updates per second of each class when workers think for a random time with the given mean, then send `bytes` through
/// one link of 1 B/s shared by all.
std::vector<double> simulated(sg::Engine& engine, const std::vector<WorkerClass>& classes, double bytes,
                              bool fixed_think) {
  auto* zone = sg::create_full_zone("zone");
  auto* server = zone->create_host("server", 1e9);
  auto* link = zone->create_link("link", 1.0)->set_latency(0)->seal();
  constexpr double kHorizon = 1e6;
  std::vector<double> done(classes.size());
  std::mt19937_64 random(11);
  for (std::size_t c = 0; c < classes.size(); ++c) {
    for (int i = 0; i < classes[c].count; ++i) {
      auto* host = zone->create_host("w" + std::to_string(c) + "-" + std::to_string(i), 1e9);
      zone->add_route(host->get_netpoint(), server->get_netpoint(), nullptr, nullptr, {sg::LinkInRoute(link)}, true);
      const auto seed = random();
      sg::Actor::create("worker", host, [=, &done] {
        std::mt19937_64 own(seed);
        const auto uniform = [&own] { return (static_cast<double>(own() >> 11) + 1) / 9007199254740993.0; };
        sg::this_actor::sleep_for(classes[c].think * uniform());
        while (sg::Engine::get_clock() < kHorizon) {
          sg::this_actor::sleep_for(fixed_think ? classes[c].think : -classes[c].think * std::log(uniform()));
          sg::Comm::sendto(sg::this_actor::get_host(), server, static_cast<uint64_t>(bytes));
          done[c] += 1;
        }
      });
    }
  }
  zone->seal();
  engine.run();
  for (double& count : done) count /= sg::Engine::get_clock();
  return done;
}

TEST(Sharing, ClosedQueueAgreesWithAFlowLevelSimulator) {
  int argc = 2;
  char name[] = "sharing";
  // The plain fluid model: no TCP cross-traffic or window effects, which the model does not claim to have.
  char config[] = "--cfg=network/crosstraffic:0";
  char* argv[] = {name, config, nullptr};
  sg::Engine engine(&argc, argv);
  sg::Engine::set_config("network/model:CM02");
  sg::Engine::set_config("network/TCP-gamma:0");
  // Fast workers think 20 s, slow ones 60 s; an update holds the link for 5 s: near the knee.
  const std::vector<WorkerClass> classes{{20, 3}, {60, 4}};
  const auto seen = simulated(engine, classes, 5, false);
  const std::vector<CycleClass> model{{20, 5, 3}, {60, 5, 4}};
  std::vector<double> rates(2);
  closed_queue_rates(model, rates);
  EXPECT_NEAR(seen[0] / rates[0], 1, .02);
  EXPECT_NEAR(seen[1] / rates[1], 1, .02);
}

}  // namespace
}  // namespace mayfly
