#include <algorithm>
#include <cmath>

#include "plan/planner.h"

namespace mayfly {
namespace {

/// Functions of a platform the user may run at once.
int function_quota(const FunctionPlatform& platform, const PlanRequest& request) {
  for (const auto& [name, count] : request.quota) {
    if (name == platform.name) return count;
  }
  constexpr int kUsual = 64;  // far beyond where a parameter server saturates
  return kUsual;
}

/// The parameter server beside the functions: priced like any other, on demand.
std::optional<PlanLine> fleet_server(const Profile& profile, const Catalog& catalog) {
  const std::string type = !profile.server.type.empty() ? profile.server.type : catalog.server_type;
  if (type.empty()) return {};
  PlanLine line{.type = type, .count = 1};
  if (!catalog.server_charged) return line;
  if (profile.server.price) {
    line.rate = *profile.server.price;
    return line;
  }
  const InstanceType* known = catalog.find(type);
  if (known == nullptr || !known->on_demand) return {};
  line.rate = known->on_demand->rate;
  return line;
}

class FleetSearcher {
 public:
  FleetSearcher(const Profile& profile, const FunctionPlatform& platform, PlanLine server, const PlanRequest& request)
      : profile_(profile),
        platform_(platform),
        server_(std::move(server)),
        request_(request),
        epochs_(std::get<ForEpochs>(request.target).epochs) {
    if (request.progress) {
      if (const auto* reached = std::get_if<ForEpochs>(&request.progress->reached)) epochs_ -= reached->epochs;
      elapsed_ = request.progress->elapsed;
    }
  }

  FleetSearch run() {
    const ServerlessProfile& s = *profile_.serverless;
    const int low = std::max(s.memory_mib_min, platform_.memory_mib_min);
    const int high = std::min(s.memory_mib_max, platform_.memory_mib_max);
    if (request_.search == SearchMethod::window) {
      first_feasible(low, high);
    } else {
      for (int memory = low; memory <= high; memory += s.memory_mib_step) {
        for (int n = 1; n <= function_quota(platform_, request_); ++n) consider({n, memory});
      }
    }
    const auto cheaper_option = [](const PlanOption& a, const PlanOption& b) {
      if (a.cost != b.cost) return a.cost < b.cost;
      return a.fleet->functions < b.fleet->functions;
    };
    std::sort(result_.best.begin(), result_.best.end(), cheaper_option);
    return std::move(result_);
  }

 private:
  std::optional<PlanOption> option(FunctionFleet fleet) {
    ++result_.evaluated;
    const auto p = serverless_prediction(profile_, platform_, fleet, std::max(0.0, epochs_), server_.rate);
    if (!std::isfinite(p.time.count()) || p.iterations <= 0) return {};
    PlanOption made{.servers = {server_}, .fleet = fleet, .platform = platform_.name, .exchange = Meeting::servers};
    made.time = p.time.count();
    made.cost = made.added_cost = p.cost.value;
    made.hourly = p.cost.value / made.time * 3600;
    if (!result_.quickest || made.time < result_.quickest->time) result_.quickest = made;
    if (request_.deadline && p.time + elapsed_ > *request_.deadline) return {};
    return made;
  }
  void consider(FunctionFleet fleet) {
    if (auto made = option(fleet)) result_.best.push_back(std::move(*made));
  }

  /// lambdaDNN: per memory size the first number of functions within its bounds that meets the deadline.
  void first_feasible(int low, int high) {
    const ServerlessProfile& s = *profile_.serverless;
    std::vector<Lane> lanes;
    std::vector<int> memories;
    for (int memory = low; memory <= high; memory += s.memory_mib_step) {
      Lane lane{.upper = std::min(serverless_most_functions(s), function_quota(platform_, request_))};
      if (request_.deadline) {
        const double fewest = serverless_fewest_functions(profile_, memory, epochs_, *request_.deadline - elapsed_);
        lane.lower = static_cast<int>(std::clamp(std::ceil(fewest), 1.0, 1e9));
      }
      lane.at = [this, memory](int n) -> std::optional<Candidate> {
        const auto made = option({n, memory});
        if (!made) return {};
        return Candidate{.counts = {n}, .time = made->time, .hourly = made->hourly, .cost = made->cost, .machines = n};
      };
      lanes.push_back(std::move(lane));
      memories.push_back(memory);
    }
    Candidate winner;
    if (const auto lane = first_feasible_lane(lanes, winner)) consider({winner.machines, memories[*lane]});
  }

  const Profile& profile_;
  const FunctionPlatform& platform_;
  PlanLine server_;
  const PlanRequest& request_;
  double epochs_;
  Seconds elapsed_{0};
  FleetSearch result_;
};

}  // namespace

FleetSearch search_fleets(const Profile& profile, const Catalog& catalog, const PlanRequest& request) {
  const bool asked = request.markets.contains(Market::serverless);
  const bool possible = profile.serverless && profile.samples && profile.dataset_size && profile.parameters &&
                        std::holds_alternative<ForEpochs>(request.target) && request.existing.empty();
  if (!asked || !possible) return {};
  const FunctionPlatform* platform = catalog.find_function(profile.serverless->platform);
  const auto server = fleet_server(profile, catalog);
  if (platform == nullptr || !server) return {};
  return FleetSearcher(profile, *platform, *server, request).run();
}

}  // namespace mayfly
