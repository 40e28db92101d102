#pragma once

#include <optional>
#include <vector>

#include "plan/planner.h"

namespace mayfly {

/// A candidate together with the place it belongs to: an index into the planner's problems.
struct Placed {
  std::size_t site = 0;
  Candidate candidate{};
};

/// A plan that may be chosen; of functions it has no place.
struct Finalist {
  PlanOption option{};
  std::optional<Placed> placed{};
};

/// The same machines, a share of those on the spot market rented on demand instead. Nothing where none would move, or
/// one has no such price.
std::optional<PlanOption> partly_on_demand(PlanOption option, const Catalog& catalog, double share);

/// What the weather does to each; returns to how many. Plans the trace does not cover stay without an answer; an error
/// if the first one, or with a wanted confidence every one, is such.
Result<int> assess(std::vector<Finalist>& finalists, const std::vector<Problem>& sites, const PlanRequest& request);

/// Keeps those that keep deadline and budget as often as wanted, cheapest first by the cost half of their windows stay
/// below. An answer only where there are none.
std::optional<Infeasible> keep_confident(std::vector<Finalist>& finalists, double confidence);

}  // namespace mayfly
