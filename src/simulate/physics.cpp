// Models: docs/models.md#policies
#include "simulate/physics.h"

#include <algorithm>
#include <cmath>

namespace mayfly {
namespace {

double speed_without_idlers(const Shapes& shapes, int machines) {
  const auto even = shapes.best(machines);
  const auto uneven = uneven_shape(shapes, machines);
  return std::max(even ? shapes.speed(*even) : 0, uneven ? uneven->speed : 0);
}

}  // namespace

double no_neighbours_lost(Shape grid, int hit) {
  // Ways to take k of a ring of p without neighbours: p / (p - k) * C(p - k, k); of a ring of one or two, at most one.
  const int p = grid.stages;
  std::vector<double> ring{1};
  for (int k = 1; 2 * k <= std::max(p, 2) && k <= hit; ++k)
    ring.push_back(std::exp(std::lgamma(p - k + 1.0) - std::lgamma(k + 1.0) - std::lgamma(p - 2.0 * k + 1) +
                            std::log(p) - std::log(p - k)));
  if (p <= 2) ring = {1, static_cast<double>(p)};
  std::vector<double> ways{1};
  for (int pipeline = 0; pipeline < grid.data_parallel; ++pipeline) {
    std::vector<double> next(std::min(ways.size() + ring.size() - 1, static_cast<std::size_t>(hit) + 1), 0);
    for (std::size_t a = 0; a < ways.size(); ++a) {
      for (std::size_t b = 0; b < ring.size() && a + b < next.size(); ++b) next[a + b] += ways[a] * ring[b];
    }
    ways = std::move(next);
  }
  if (static_cast<std::size_t>(hit) >= ways.size()) return 0;
  const int n = grid.machines();
  return ways[static_cast<std::size_t>(hit)] /
         std::exp(std::lgamma(n + 1.0) - std::lgamma(hit + 1.0) - std::lgamma(n - hit + 1.0));
}

Physics::Physics(const Shapes& shapes, const MigrationCosts& costs, double global_batch, SystemFigures figures)
    : shapes_(shapes),
      costs_(costs),
      global_batch_(global_batch),
      figures_(figures),
      uneven_(static_cast<std::size_t>(shapes.most_machines()) + 1) {}

double Physics::speed(Mechanism mechanism, int shape, int machines) const {
  if (mechanism == Mechanism::regroup) {
    const int used = std::min(machines, shapes_.most_machines());
    auto& known = uneven_[static_cast<std::size_t>(used)];
    if (!known) known = speed_without_idlers(shapes_, used);
    return *known;
  }
  return shapes_.speed(shape) * (1 - redundant_share(mechanism));
}

int Physics::busy(Mechanism mechanism, int shape, int machines) const {
  if (mechanism == Mechanism::regroup && speed(mechanism, shape, machines) > shapes_.speed(shape))
    return std::min(machines, shapes_.most_machines());
  return shapes_[shape].machines();
}

double Physics::redundant_share(Mechanism mechanism) const {
  return mechanism == Mechanism::shadow ? figures_.redundancy : 0;
}

Outage Physics::shadow_change(const Assign& command, const Standing& standing, int to) const {
  const Seconds rebuilt = costs_.restart(to, standing.added > 0 || !standing.from) + figures_.global_rendezvous;
  if (!standing.from) return {.pause = rebuilt};
  if (command.lost == 0) return {.pause = figures_.local_rendezvous};
  const Shape& grid = shapes_[*standing.from];
  Outage mean;
  for (int hit = 0; hit <= std::min(command.lost, grid.machines()); ++hit) {
    const double p = hit_probability(command.machines_before, grid.machines(), command.lost, hit);
    if (hit == 0 || p == 0) continue;
    const double mended = p * no_neighbours_lost(grid, hit);
    // The shadow carries on at a lower speed while the others gather.
    mean.pause += mended * figures_.local_rendezvous * (2 - 1 / figures_.shadow_slowdown) +
                  (p - mended) * (rebuilt + costs_.checkpoint() + costs_.whole_state(to));
    mean.work_lost += (p - mended) * standing.since_checkpoint;
  }
  return mean;
}

Outage Physics::migration(const Assign& command, const Standing& standing, int to) const {
  const Seconds cost = costs_.expected(command.machines_before, standing.from, command.lost, to);
  if (cost.count() == 0) return {.pause = standing.pending};
  return {.pause = standing.pending.count() > 0 ? cost + costs_.restart(to, false) : cost};
}

Outage Physics::change(const Assign& command, const Standing& standing) const {
  const int to = *shapes_.find(command.shape);
  const bool newcomers = standing.added > 0 || !standing.from;
  switch (command.mechanism) {
    case Mechanism::free:
      return {};
    case Mechanism::start:
      return {.pause = costs_.restart(to, true) + costs_.whole_state(to)};
    case Mechanism::reload: {
      Seconds pause = costs_.restart(to, newcomers) + costs_.whole_state(to);
      if (standing.from) pause += costs_.checkpoint();
      if (standing.pending.count() > 0) pause += costs_.restart(to, newcomers);
      return {.pause = pause};
    }
    case Mechanism::rewind: {
      const Seconds pause = costs_.restart(to, newcomers) + costs_.whole_state(to) + costs_.checkpoint();
      if (!standing.from || command.lost == 0) return {.pause = pause};
      return {.pause = pause + figures_.restart_wait, .work_lost = standing.since_checkpoint};
    }
    case Mechanism::shadow:
      return shadow_change(command, standing, to);
    case Mechanism::regroup:
      if (newcomers)
        return {.pause = costs_.restart(to, true) + (standing.from ? costs_.regroup(to) : costs_.whole_state(to))};
      // Half a step is cut off on average.
      return {.pause = costs_.regroup(to), .work_lost = Seconds(0.5 * global_batch_ / shapes_.speed(*standing.from))};
    case Mechanism::migrate:
      break;
  }
  return migration(command, standing, to);
}

}  // namespace mayfly
