#include "control/job.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "predict/worker.h"

namespace mayfly {
namespace {

/// Data parallel jobs grow no wider: tables of changes grow with the square, and predictions reach no further.
constexpr int kWidest = 256;
/// Where every machine counts for one and every change costs the same there are no such tables.
constexpr int kWidestUnmeasured = 4096;

/// `n` machines in the proportions of the mixture.
std::vector<int> dealt(const std::vector<MachineCount>& mix, int n) {
  int whole = 0;
  for (const MachineCount& part : mix) whole += part.count;
  std::vector<int> counts;
  double owed = 0;
  for (const MachineCount& part : mix) {
    owed += static_cast<double>(n) * part.count / whole;
    counts.push_back(static_cast<int>(std::floor(owed + 0.5)));
    owed -= counts.back();
  }
  return counts;
}

Result<Shapes> data_parallel_shapes(const Profile& profile, const std::vector<MachineCount>& mix,
                                    const Catalog& catalog, const ServerPool& servers, int least, int most) {
  std::vector<Worker> workers;
  for (const MachineCount& part : mix) {
    const auto type = lookup(catalog, part.type);
    if (!type) return unexpected(type.error());
    auto worker = make_worker(profile, **type, catalog);
    if (!worker) return unexpected(worker.error());
    workers.push_back(*std::move(worker));
  }
  const Workload workload = make_workload(profile);
  std::vector<Shape> shapes;
  std::vector<double> speeds;
  for (int n = least; n <= most; ++n) {
    const std::vector<int> counts = dealt(mix, n);
    std::vector<Group> groups;
    for (std::size_t i = 0; i < mix.size(); ++i) {
      if (counts[i] > 0) groups.push_back({.worker = &workers[i], .count = counts[i]});
    }
    shapes.push_back({n, 1});
    speeds.push_back(cluster_speed(Predictor::queue, workload, groups, servers).samples_per_s);
    if (speeds.back() <= 0)
      return fail("profile '{}' on {} machines: the network between machines of {} is not known", profile.name, n,
                  mix.front().type);
  }
  return Shapes(std::move(shapes), std::move(speeds));
}

/// What a job's parameters lie on, and what that costs.
struct ServerSide {
  ServerPool pool{};
  UsdPerHour hourly{};
};
Result<ServerSide> server_side(const Profile& profile, const Catalog& catalog, const MachineCount& wanted) {
  if (profile.pipeline || profile.exchange != Exchange::server) return ServerSide{};
  const std::string usual = profile.server.type.empty() ? catalog.server_type : profile.server.type;
  const auto server = lookup(catalog, wanted.type.empty() ? usual : wanted.type);
  if (!server) return unexpected(server.error());
  const int count = wanted.type.empty() ? 1 : wanted.count;
  const auto& price = (*server)->on_demand;
  return ServerSide{.pool = make_servers(profile, **server, count),
                    .hourly = price ? price->rate * static_cast<double>(count) : UsdPerHour{}};
}

}  // namespace

Result<Job> make_job(const Profile& profile, const Catalog& catalog, const JobRequest& request) {
  std::string type_name = request.type;
  if (type_name.empty() && profile.pipeline) type_name = profile.pipeline->type;
  if (type_name.empty() && profile.types.size() == 1) type_name = profile.types.begin()->first;
  if (type_name.empty()) return fail("profile {} fits several types: choose one with --type", profile.name);
  if (profile.pipeline && type_name != profile.pipeline->type)
    return fail("--type {}: profile {} has pipelines measured on {} only", type_name, profile.name,
                profile.pipeline->type);
  const auto type = lookup(catalog, type_name);
  if (!type) return unexpected(type.error());
  const auto& spot = (*type)->spot;
  const auto& on_demand = (*type)->on_demand;
  if (!spot && !on_demand) return fail("{} has no price in catalogue '{}'", type_name, catalog.name);
  const auto servers = server_side(profile, catalog, request.servers);
  if (!servers) return unexpected(servers.error());
  const auto mix = request.mix.empty() ? std::vector<MachineCount>{{type_name, 1}} : request.mix;
  const int most = std::clamp(request.most_machines, 1, kWidest);
  auto shapes = profile.pipeline ? pipeline_shapes(profile)
                                 : data_parallel_shapes(profile, mix, catalog, servers->pool,
                                                        std::clamp(request.least_machines, 1, most), most);
  if (!shapes) return unexpected(shapes.error());
  if (request.uneven) shapes = with_uneven(*shapes);
  const double batch = profile.pipeline ? profile.pipeline->global_batch : 0;
  const auto recovery = request.recovery ? request.recovery : profile.recovery;
  if (!profile.pipeline && !recovery)
    return fail("profile {} says nothing of what a change of the cluster costs (recovery_s)", profile.name);
  auto costs = profile.pipeline ? MigrationCosts::make(profile, *shapes, request.migration)
                                : Result<MigrationCosts>(MigrationCosts::constant(*shapes, *recovery));
  if (!costs) return unexpected(costs.error());
  return Job{.shapes = *std::move(shapes),
             .costs = *std::move(costs),
             .global_batch = batch,
             .type = type_name,
             .spot = spot ? spot->rate : on_demand->rate,
             .on_demand = on_demand ? std::optional(on_demand->rate) : std::nullopt,
             .standing = servers->hourly};
}

Job unmeasured_job(int most_machines) {
  std::vector<Shape> table;
  std::vector<double> speeds;
  for (int n = 1; n <= std::clamp(most_machines, 1, kWidestUnmeasured); ++n) {
    table.push_back({n, 1});
    speeds.push_back(n);
  }
  Shapes shapes(std::move(table), std::move(speeds));
  MigrationCosts costs = MigrationCosts::constant(shapes, Seconds(1));
  return Job{.shapes = std::move(shapes), .costs = std::move(costs)};
}

}  // namespace mayfly
