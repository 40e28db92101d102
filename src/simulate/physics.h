#pragma once

#include "control/event.h"
#include "control/policy.h"
#include "predict/migration.h"

namespace mayfly {

/// Figures of the published systems that no profile holds. docs/models.md#policies says where each comes from.
struct SystemFigures {
  Seconds checkpoint_every{600};
  Seconds restart_wait{60};       ///< Varuna: from a loss to the relaunch
  double redundancy = 0.15;       ///< Bamboo: share of a step spent for the neighbour
  double shadow_slowdown = 1.5;   ///< Bamboo: a step while one machine does the work of two
  Seconds local_rendezvous{20};   ///< Bamboo: neighbours close the gap
  Seconds global_rendezvous{30};  ///< Bamboo: when they cannot
  Seconds on_demand_start{120};   ///< from the order to the first step
};

/// What a change did to the training.
struct Outage {
  Seconds pause{};
  Seconds work_lost{};  ///< training time that counts for nothing
};

/// How a policy's changes are carried out, and what they cost: the part of a run that is not decided but happens.
class Physics {
 public:
  /// `shapes` and `costs` must outlive this object.
  Physics(PolicyName policy, const Shapes& shapes, const MigrationCosts& costs, double global_batch,
          SystemFigures figures);

  /// Samples per second in a shape with so many machines held.
  double speed(int shape, int machines) const;
  /// Machines of those held that have work.
  int busy(int shape, int machines) const;
  /// Share of the busy machines' time that is spent on others' work in case they are lost.
  double redundant_share() const;

  /// A change from `from` (nothing: the start) to `to` when `lost` of `before` have gone and `added` have come, while
  /// `pending` of an earlier change is left and the last checkpoint is `since_checkpoint` old.
  Outage change(int before, std::optional<int> from, int lost, int added, int to, Seconds pending,
                Seconds since_checkpoint) const;

 private:
  Outage redundant_change(int before, std::optional<int> from, int lost, int added, int to,
                          Seconds since_checkpoint) const;

  PolicyName policy_;
  const Shapes& shapes_;
  const MigrationCosts& costs_;
  double global_batch_;
  SystemFigures figures_;
  std::vector<double> uneven_;  ///< by machines: samples/s of pipelines of two depths that leave nobody idle
};

/// Pr[no two of `lost` machines are neighbours in one pipeline's ring] in a grid of which `hit` are lost at random.
double no_neighbours_lost(Shape grid, int hit);

}  // namespace mayfly
