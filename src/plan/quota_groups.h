#pragma once

#include <string>
#include <utility>
#include <vector>

#include "plan/planner.h"

// From quotas on sums to kinds and groups of a problem. A kind's machines must all count against the same quotas, as
// its count alone says what they cost; so the offers of a type that count against unlike ones make several kinds.
namespace mayfly {

/// What each machine of a kind takes of which sums: indices into the request's families and, beyond these, into the
/// site's sums of single types.
using Shares = std::vector<std::pair<std::size_t, double>>;

/// The quota of a type whose offers are of several kinds.
struct TypeSum {
  std::string type{};
  int limit = 0;
};

/// Offers of a type that count against the same quotas.
struct OfferGroup {
  Shares shares{};
  std::vector<Offer> offers{};
  int quota = 0;
  int existing = 0;
};
/// The cheapest first, with the machines that run already. `sums` are the site's, to which the type's may be added.
/// Without quotas on sums: one group with all offers. Requires offers.
std::vector<OfferGroup> offer_groups(const InstanceType& type, const PlanRequest& request, std::vector<Offer> offers,
                                     int existing, std::vector<TypeSum>& sums);

/// Machines of the type, or of "*": the request's quota; else the catalogue's.
std::optional<int> stated_quota(const InstanceType& type, const PlanRequest& request);
/// So many machines of a type a quota of it, or on a sum, allows in a market; and in the one that allows more.
int most_of(const InstanceType& type, const PlanRequest& request, Market market);
int most_of(const InstanceType& type, const PlanRequest& request);

/// For kinds with these shares and the problem's servers. No limit is below what runs already.
std::vector<QuotaGroup> quota_groups(const Problem& problem, const PlanRequest& request, const Catalog& catalog,
                                     const std::vector<TypeSum>& sums, const std::vector<Shares>& kinds);
/// No cluster has more workers than this: each kind counts against its first quota alone.
int most_by_quotas(const Problem& problem);

}  // namespace mayfly
