#pragma once

#include <optional>
#include <vector>

#include "plan/places.h"

namespace mayfly {

/// A plan that may be chosen; of functions it has no place.
struct Finalist {
  PlanOption option{};
  std::optional<Placed> placed{};
  bool searched = true;  ///< as the search found it
  bool whole = false;    ///< looked at closely
};

/// The same machines, a share of those to be rented on the spot market rented on demand instead. Nothing where none
/// would move, or one has no such offer that the request takes.
std::optional<PlanOption> partly_on_demand(PlanOption option, const Catalog& catalog, const PlanRequest& request,
                                           double share);

/// What the request's `risk` says, with what the plan costs beside its machines.
Result<Risk> whole_risk(const PlanRequest& request, const PlanOption& option, const Problem* problem,
                        const Candidate* candidate, Care care);

/// "; a deadline of 2h36m with 90 %": the promise that a plan of this risk keeps as often as is wanted; "" where there
/// is none to tell. The request has a confidence, and a deadline or a budget.
std::string keepable(const Risk& risk, const PlanRequest& request);

/// What the weather does to plans, and which of them keep what is wanted of them.
class Weathering {
 public:
  /// Both must outlive it. The request has a `risk`.
  Weathering(const std::vector<Problem>& sites, const PlanRequest& request) : sites_(sites), request_(request) {}

  /// Glances at those that were not looked at, in their order, until so many keep what is wanted and the next one costs
  /// more in any weather than the dearest of these. Plans the trace does not cover stay without an answer: an error if
  /// the first one is such, or with a wanted confidence every one.
  Result<void> glance(std::vector<Finalist>& finalists, std::size_t enough);

  /// Those that keep it, best first: cheapest with the weather; of those that cost the same the likeliest, then the
  /// soonest. The first, and what a glance cannot tell from it, were looked at closely. Empty where none keeps it.
  std::vector<Finalist> kept(const std::vector<Finalist>& finalists);

  /// Why there is none: the likeliest of all, its chance and what would raise it.
  Infeasible none_kept(const std::vector<Finalist>& finalists) const;

  int assessed() const { return assessed_; }
  int refused() const { return refused_; }  ///< that the trace does not cover

 private:
  bool keeps(const PlanOption& option) const;
  Result<Risk> risk_of(const Finalist& finalist, Care care) const;
  /// Those that a glance has a little below what is wanted and a close look above it.
  std::vector<Finalist> nearly_kept(const std::vector<Finalist>& finalists, std::size_t most) const;

  const std::vector<Problem>& sites_;
  const PlanRequest& request_;
  int assessed_ = 0;
  int refused_ = 0;
};

}  // namespace mayfly
