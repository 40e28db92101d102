#pragma once

#include "control/event.h"
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

/// What an assignment finds.
struct Standing {
  std::optional<int> from{};   ///< the shape so far; nothing: the start
  int added = 0;               ///< machines that came since it was taken
  Seconds pending{};           ///< rest of a change under way
  Seconds since_checkpoint{};  ///< training time
};

/// What assignments cost, and how fast training goes under each mechanism: the part of a run that is not decided but
/// happens. Not for sharing between threads.
class Physics {
 public:
  /// `shapes` and `costs` must outlive this object.
  Physics(const Shapes& shapes, const MigrationCosts& costs, double global_batch, SystemFigures figures);

  /// Samples per second in a shape with so many machines held.
  double speed(Mechanism mechanism, int shape, int machines) const;
  /// Machines of those held that have work.
  int busy(Mechanism mechanism, int shape, int machines) const;
  /// Share of the busy machines' time that is spent on others' work in case they are lost.
  double redundant_share(Mechanism mechanism) const;

  /// What it takes to carry out the command. Its shape is one of the table's.
  Outage change(const Assign& command, const Standing& standing) const;

 private:
  Outage shadow_change(const Assign& command, const Standing& standing, int to) const;
  Outage migration(const Assign& command, const Standing& standing, int to) const;

  const Shapes& shapes_;
  const MigrationCosts& costs_;
  double global_batch_;
  SystemFigures figures_;
  /// By machines: samples/s of pipelines of two depths that leave no machine idle, once it was asked for.
  mutable std::vector<std::optional<double>> uneven_;
};

/// Pr[no two of `lost` machines are neighbours in one pipeline's ring] in a grid of which `hit` are lost at random.
double no_neighbours_lost(Shape grid, int hit);

}  // namespace mayfly
