#include "cli/run_markets.h"

#include <algorithm>

#include "base/text.h"

namespace mayfly::cli {

Result<void> choose_markets(const std::string& flag, PlanRequest& request) {
  if (flag.empty()) return {};
  request.markets.clear();
  for (const auto word : split(flag, ',')) {
    const auto market = parse_market(trimmed(word));
    if (!market) return fail("--market: {}", market.error().message);
    if (*market == Market::serverless) return fail("--market serverless: cannot be run yet, want spot or on-demand");
    request.markets.insert(*market);
  }
  return {};
}

bool may_rent(const PlanRequest& request, const std::vector<MachineRole>& planned, const Catalog& catalog) {
  const auto rented = [](const MachineRole& role) { return role.market == Market::on_demand; };
  if (std::any_of(planned.begin(), planned.end(), rented)) return true;
  if (!request.markets.contains(Market::on_demand)) return false;
  const InstanceType* type = planned.empty() ? nullptr : catalog.find(planned.back().type);
  if (type == nullptr || !type->on_demand || !request.wanted_offer) return true;
  return request.wanted_offer(
      *type,
      {.type = type->name, .market = Market::on_demand, .zone = planned.back().zone, .rate = type->on_demand->rate});
}

}  // namespace mayfly::cli
