#include "plan/confidence.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mayfly {

std::optional<PlanOption> partly_on_demand(PlanOption option, const Catalog& catalog, double share) {
  int spot = 0;
  for (const PlanLine& line : option.cluster) spot += line.market == Market::spot ? line.count : 0;
  int left = static_cast<int>(std::ceil(share * spot));
  if (left == 0 || (share < 1 && left == spot)) return {};
  const double before = option.hourly;
  std::vector<PlanLine> cluster;
  for (PlanLine line : option.cluster) {
    const int moved = line.market == Market::spot ? std::min(left, line.count) : 0;
    line.count -= moved;
    left -= moved;
    if (line.count > 0) cluster.push_back(line);
    if (moved == 0) continue;
    const InstanceType* type = catalog.find(line.type);
    if (type == nullptr || !type->on_demand) return {};
    cluster.push_back({line.type, Market::on_demand, line.zone, moved, type->on_demand->rate});
    option.hourly += moved * (type->on_demand->rate.value - line.rate.value);
  }
  option.cluster = std::move(cluster);
  option.cost = option.hourly * option.time / 3600;
  option.added_cost += (option.hourly - before) * option.time / 3600;
  return option;
}

Result<int> assess(std::vector<Finalist>& finalists, const std::vector<Problem>& sites, const PlanRequest& request) {
  std::optional<Error> first;
  int assessed = 0;
  for (std::size_t i = 0; i < finalists.size(); ++i) {
    Finalist& one = finalists[i];
    auto risk = one.placed ? request.risk(one.option, &sites[one.placed->site], &one.placed->candidate)
                           : request.risk(one.option, nullptr, nullptr);
    if (risk) {
      one.option.risk = *risk;
      ++assessed;
      continue;
    }
    if (!first) first = risk.error();
    if (i == 0 && !request.confidence) return unexpected(*first);
  }
  if (assessed == 0) return unexpected(*first);
  return assessed;
}

namespace {

/// Of the windows, how many keep what was promised; below 0: not assessed.
double kept(const PlanOption& option) {
  if (!option.risk) return -1;
  const auto share = [](const std::optional<Estimate>& part) { return part ? part->middle : 1; };
  return std::min(share(option.risk->in_time), share(option.risk->in_budget));
}

}  // namespace

std::optional<Infeasible> keep_confident(std::vector<Finalist>& finalists, double confidence) {
  const auto best = std::max_element(finalists.begin(), finalists.end(),
                                     [](const auto& a, const auto& b) { return kept(a.option) < kept(b.option); });
  if (kept(best->option) < confidence) {
    const auto& risk = *best->option.risk;
    const bool late = risk.in_time && risk.in_time->middle < confidence;
    return Infeasible{.binding = late ? "deadline" : "budget",
                      .reason = fmt::format(
                          "wanted in {:.4g} % of the windows; the safest of {} plans looked at keeps it in {:.4g} %",
                          100 * confidence, finalists.size(), 100 * kept(best->option)),
                      .nearest = best->option};
  }
  std::erase_if(finalists, [&](const Finalist& one) { return kept(one.option) < confidence; });
  const auto order = [](const Finalist& one) {
    return std::pair(one.option.risk->cost_p50.value_or(std::numeric_limits<double>::infinity()), one.option.cost);
  };
  std::stable_sort(finalists.begin(), finalists.end(),
                   [&](const auto& a, const auto& b) { return order(a) < order(b); });
  return {};
}

}  // namespace mayfly
