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

Physics::Physics(PolicyName policy, const Shapes& shapes, const MigrationCosts& costs, double global_batch,
                 SystemFigures figures)
    : policy_(policy), shapes_(shapes), costs_(costs), global_batch_(global_batch), figures_(figures) {
  for (int n = 0; policy == PolicyName::template_ && n <= shapes.most_machines(); ++n)
    uneven_.push_back(speed_without_idlers(shapes, n));
}

double Physics::speed(int shape, int machines) const {
  if (policy_ == PolicyName::template_)
    return uneven_[static_cast<std::size_t>(std::min(machines, shapes_.most_machines()))];
  return shapes_.speed(shape) * (1 - redundant_share());
}

int Physics::busy(int shape, int machines) const {
  if (policy_ == PolicyName::template_ && speed(shape, machines) > shapes_.speed(shape))
    return std::min(machines, shapes_.most_machines());
  return shapes_[shape].machines();
}

double Physics::redundant_share() const { return policy_ == PolicyName::redundant ? figures_.redundancy : 0; }

Outage Physics::redundant_change(int before, std::optional<int> from, int lost, int added, int to,
                                 Seconds since_checkpoint) const {
  const Seconds rebuilt = costs_.restart(to, added > 0 || !from) + figures_.global_rendezvous;
  if (!from) return {.pause = rebuilt};
  if (lost == 0) return {.pause = figures_.local_rendezvous};
  const Shape& grid = shapes_[*from];
  Outage mean;
  for (int hit = 0; hit <= std::min(lost, grid.machines()); ++hit) {
    const double p = hit_probability(before, grid.machines(), lost, hit);
    if (hit == 0 || p == 0) continue;
    const double mended = p * no_neighbours_lost(grid, hit);
    // The shadow carries on at a lower speed while the others gather.
    mean.pause += mended * figures_.local_rendezvous * (2 - 1 / figures_.shadow_slowdown) +
                  (p - mended) * (rebuilt + costs_.checkpoint() + costs_.whole_state(to));
    mean.work_lost += (p - mended) * since_checkpoint;
  }
  return mean;
}

Outage Physics::change(int before, std::optional<int> from, int lost, int added, int to, Seconds pending,
                       Seconds since_checkpoint) const {
  const bool newcomers = added > 0 || !from;
  switch (policy_) {
    case PolicyName::ideal:
      return {};
    case PolicyName::on_demand:
      return {.pause = costs_.restart(to, true) + costs_.whole_state(to)};
    case PolicyName::reactive: {
      Seconds pause = costs_.restart(to, newcomers) + costs_.whole_state(to);
      if (from) pause += costs_.checkpoint();
      if (pending.count() > 0) pause += costs_.restart(to, newcomers);
      return {.pause = pause};
    }
    case PolicyName::checkpoint: {
      const Seconds pause = costs_.restart(to, newcomers) + costs_.whole_state(to) + costs_.checkpoint();
      if (!from || lost == 0) return {.pause = pause};
      return {.pause = pause + figures_.restart_wait, .work_lost = since_checkpoint};
    }
    case PolicyName::redundant:
      return redundant_change(before, from, lost, added, to, since_checkpoint);
    case PolicyName::template_: {
      if (newcomers) return {.pause = costs_.restart(to, true) + (from ? costs_.regroup(to) : costs_.whole_state(to))};
      return {.pause = costs_.regroup(to), .work_lost = Seconds(0.5 * global_batch_ / shapes_.speed(*from))};
    }
    case PolicyName::persist:
    case PolicyName::liveput:
    case PolicyName::deadline:
      break;
  }
  const Seconds cost = costs_.expected(before, from, lost, to);
  if (cost.count() == 0) return {.pause = pending};
  return {.pause = pending.count() > 0 ? cost + costs_.restart(to, false) : cost};
}

}  // namespace mayfly
