#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/places.h"
#include "predict/serverless.h"

namespace mayfly {

/// Why no plan keeps the promise: which constraint binds, and the nearest promise that can be kept.
class Refusal {
 public:
  /// All must outlive it. Places are searched with other deadlines and targets, and left as they were.
  Refusal(const Profile& profile, const Catalog& catalog, const PlanRequest& request, Places& places)
      : profile_(profile), catalog_(catalog), request_(request), places_(places) {}

  /// The cheapest in time is dearer than the budget.
  Infeasible over_budget(const PlanOption& cheapest) const;
  /// Nothing is in time. `nothing`: why there is no place at all, if so; `fleet`: the quickest of functions.
  Infeasible no_cluster(const Infeasible& nothing, const std::optional<PlanOption>& fleet) const;

 private:
  Infeasible out_of_reach() const;
  Infeasible too_slow(const std::optional<PlanOption>& fleet) const;
  bool feasible_at(double loss) const;
  std::optional<double> reachable_loss() const;
  std::optional<int> quota_that_suffices() const;

  const Profile& profile_;
  const Catalog& catalog_;
  const PlanRequest& request_;
  Places& places_;
};

/// What the deadline leaves of time, s; infinite without one.
double remaining(const PlanRequest& request);

}  // namespace mayfly
