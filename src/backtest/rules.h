#pragma once

#include <vector>

#include "simulate/scene.h"

namespace mayfly {

/// A whole cluster as the rules that mayfly is compared with rent it: all of its machines or none.
struct Rental {
  /// Holds until the next one's time.
  struct Stretch {
    double time = 0;     ///< s
    bool whole = false;  ///< the market has every machine
    double hourly = 0;   ///< USD/h of the cluster there, with what is paid besides
  };
  std::vector<Stretch> market{};  ///< strictly rising times, from 0
  double on_demand_hourly = 0;    ///< USD/h of the same machines on demand
  double end = 0;                 ///< s, of the trace
};
/// What a plan takes from the market, or holds on demand in any case, as one cluster.
Rental rental_of(const Scene& scene, UsdPerHour on_demand);

struct RuleFigures {
  Seconds restart{120};           ///< from renting the cluster anew to its first step; paid, and nothing is trained
  Seconds checkpoint_every{600};  ///< of training; what came after the last one is lost with the machines
  Seconds look{60};               ///< uniform progress looks at the clock this often
};

/// How one job went.
struct RuleRun {
  bool finished = false;  ///< before the trace ended
  double time = 0;        ///< s, since its start
  double cost = 0;        ///< USD
  int restarts = 0;       ///< times the cluster was rented anew

  bool operator==(const RuleRun&) const = default;
};

/// A job of so many seconds' work for the whole cluster, from when that first trains.
struct RuleJob {
  double start = 0;     ///< s of the trace
  double work = 0;      ///< s
  double deadline = 0;  ///< s, from the start
};

/// One cluster on the market, as SkyPilot's managed jobs have it: when a machine goes the whole cluster is given up;
/// when the market has all of its machines again it is rented anew and goes on from the last checkpoint. It never rents
/// on demand and knows no deadline.
RuleRun fixed_run(const Rental& rental, const RuleJob& job, const RuleFigures& figures);

/// Uniform progress (Wu et al., Can't Be Late, NSDI 2024). On the market whenever it has the whole cluster. Without it:
/// on demand when less is done than a straight line from the start to the deadline asks, until the line of two restarts
/// later is reached; else it waits. When what is left and two restarts take all the time there is, on demand to the
/// end. What is left is known exactly, which errs in the rule's favour; it saves before it changes by its own choice.
RuleRun uniform_progress_run(const Rental& rental, const RuleJob& job, const RuleFigures& figures);

}  // namespace mayfly
