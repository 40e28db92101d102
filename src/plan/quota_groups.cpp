#include "plan/quota_groups.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace mayfly {
namespace {

int machines_within(double limit, double each) { return static_cast<int>(std::min(1e6, std::floor(limit / each))); }

double cheapest(const OfferGroup& group) {
  const auto least = std::min_element(group.offers.begin(), group.offers.end(),
                                      [](const Offer& a, const Offer& b) { return a.rate < b.rate; });
  return least->rate.value;
}

}  // namespace

std::optional<int> stated_quota(const InstanceType& type, const PlanRequest& request) {
  std::optional<int> all;
  for (const auto& [name, count] : request.quota) {
    if (name == type.name) return count;
    if (name == "*") all = count;
  }
  return all ? all : type.quota;
}

int most_of(const InstanceType& type, const PlanRequest& request, Market market) {
  const auto stated = stated_quota(type, request);
  const auto sums = quotas_on(request.families, type, market);
  int most = stated ? *stated : sums.empty() ? request.default_quota : std::numeric_limits<int>::max();
  for (const std::size_t i : sums)
    most = std::min(most, machines_within(request.families[i].limit, use_of(request.families[i], type)));
  return most;
}

int most_of(const InstanceType& type, const PlanRequest& request) {
  int most = 0;
  for (const Market market : {Market::spot, Market::on_demand}) most = std::max(most, most_of(type, request, market));
  return most;
}

std::vector<OfferGroup> offer_groups(const InstanceType& type, const PlanRequest& request, std::vector<Offer> offers,
                                     int existing, std::vector<TypeSum>& sums) {
  std::vector<OfferGroup> groups;
  for (Offer& offer : offers) {
    Shares shares;
    for (const std::size_t i : quotas_on(request.families, type, offer.market))
      shares.emplace_back(i, use_of(request.families[i], type));
    auto group = std::find_if(groups.begin(), groups.end(), [&](const OfferGroup& g) { return g.shares == shares; });
    if (group == groups.end()) {
      const int quota = most_of(type, request, offer.market);
      group = groups.insert(groups.end(), OfferGroup{.shares = shares, .quota = quota});
    }
    group->offers.push_back(std::move(offer));
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const OfferGroup& a, const OfferGroup& b) { return cheapest(a) < cheapest(b); });
  // In which market machines run is not said: the cheapest that has room for them.
  const auto room = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.quota >= existing; });
  OfferGroup& running = room == groups.end() ? groups.front() : *room;
  running.existing = existing;
  running.quota = std::max(running.quota, existing);
  std::erase_if(groups, [](const OfferGroup& group) { return group.quota == 0; });
  for (OfferGroup& group : groups) {
    for (Offer& offer : group.offers) offer.limit = std::min(offer.limit, group.quota);
  }
  const auto stated = stated_quota(type, request);
  if (groups.size() < 2 || !stated) return groups;
  for (OfferGroup& group : groups) group.shares.emplace_back(request.families.size() + sums.size(), 1);
  sums.push_back({type.name, *stated});
  return groups;
}

std::vector<QuotaGroup> quota_groups(const Problem& problem, const PlanRequest& request, const Catalog& catalog,
                                     const std::vector<TypeSum>& sums, const std::vector<Shares>& kinds) {
  std::vector<QuotaGroup> groups;
  for (const FamilyQuota& quota : request.families) groups.push_back({.name = name(quota), .limit = 1.0 * quota.limit});
  for (const TypeSum& sum : sums) groups.push_back({.name = sum.type, .limit = 1.0 * sum.limit});
  for (QuotaGroup& group : groups) {
    group.use.assign(kinds.size(), 0);
    group.server_use.assign(problem.servers.size(), 0);
  }
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    for (const auto& [i, use] : kinds[k]) groups[i].use[k] = use;
  }
  for (std::size_t s = 0; s < problem.servers.size(); ++s) {
    const InstanceType* type = catalog.find(problem.servers[s].type);
    if (type == nullptr) continue;
    for (const std::size_t i : quotas_on(request.families, *type, problem.servers[s].market))
      groups[i].server_use[s] = problem.servers[s].pool.count * use_of(request.families[i], *type);
  }
  std::erase_if(groups, [](const QuotaGroup& group) {
    const auto none = [](const std::vector<double>& uses) {
      return std::all_of(uses.begin(), uses.end(), [](double use) { return use <= 0; });
    };
    return none(group.use) && none(group.server_use);
  });
  for (QuotaGroup& group : groups) {
    double running = 0;
    for (std::size_t k = 0; k < kinds.size(); ++k) running += problem.kinds[k].existing * group.use[k];
    for (std::size_t s = 0; s < problem.servers.size(); ++s) {
      const auto same = [&](const MachineCount& machine) { return machine.type == problem.servers[s].type; };
      const auto known = std::find_if(request.existing.begin(), request.existing.end(), same);
      if (known != request.existing.end() && known->count >= problem.servers[s].pool.count)
        running = std::max(running, group.server_use[s]);
    }
    group.limit = std::max(group.limit, running);
  }
  return groups;
}

int most_by_quotas(const Problem& problem) {
  std::map<std::size_t, std::pair<double, double>>
      by_group;  // machines there are, and the least of the quota one takes
  double most = 0;
  for (std::size_t k = 0; k < problem.kinds.size(); ++k) {
    const auto first = std::find_if(problem.groups.begin(), problem.groups.end(),
                                    [&](const QuotaGroup& group) { return group.use[k] > 0; });
    if (first == problem.groups.end()) {
      most += problem.kinds[k].limit();
      continue;
    }
    auto [at, fresh] = by_group.try_emplace(static_cast<std::size_t>(first - problem.groups.begin()), 0, first->use[k]);
    at->second.first += problem.kinds[k].limit();
    at->second.second = std::min(at->second.second, first->use[k]);
  }
  for (const auto& [group, sum] : by_group)
    most += std::min(sum.first, std::floor(problem.groups[group].limit / sum.second));
  return static_cast<int>(std::min(most, 1e6));
}

bool within_families(const PlanOption& option, const Catalog& catalog, const PlanRequest& request) {
  std::vector<double> used(request.families.size());
  const auto add = [&](const PlanLine& line) {
    const InstanceType* type = catalog.find(line.type);
    if (type == nullptr) return;
    for (const std::size_t i : quotas_on(request.families, *type, line.market))
      used[i] += line.count * use_of(request.families[i], *type);
  };
  for (const PlanLine& line : option.cluster) add(line);
  for (const PlanLine& line : option.servers) add(line);
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (used[i] > request.families[i].limit + 1e-6) return false;
  }
  return true;
}

}  // namespace mayfly
