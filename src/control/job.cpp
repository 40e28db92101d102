#include "control/job.h"

#include <fmt/core.h>

#include <algorithm>

#include "predict/worker.h"

namespace mayfly {
namespace {

/// Data parallel jobs grow no wider: tables of changes grow with the square, and predictions reach no further.
constexpr int kWidest = 256;
/// Where every machine counts for one and every change costs the same there are no such tables.
constexpr int kWidestUnmeasured = 4096;

Result<Shapes> data_parallel_shapes(const Profile& profile, const InstanceType& type, const Catalog& catalog,
                                    int most_machines) {
  const auto worker = make_worker(profile, type, catalog);
  if (!worker) return unexpected(worker.error());
  ServerPool servers;
  if (profile.exchange == Exchange::server) {
    const auto& named = profile.server.type.empty() ? catalog.server_type : profile.server.type;
    const auto server = lookup(catalog, named);
    if (!server) return unexpected(server.error());
    servers = make_servers(profile, **server, 1);
  }
  const Workload workload = make_workload(profile);
  std::vector<Shape> shapes;
  std::vector<double> speeds;
  for (int n = 1; n <= most_machines; ++n) {
    const Group group{.worker = &*worker, .count = n};
    shapes.push_back({n, 1});
    speeds.push_back(cluster_speed(Predictor::queue, workload, std::span(&group, 1), servers).samples_per_s);
  }
  return Shapes(std::move(shapes), std::move(speeds));
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
  if (!(*type)->on_demand) return fail("{} has no on-demand price in catalogue '{}'", type_name, catalog.name);
  auto shapes = profile.pipeline
                    ? pipeline_shapes(profile)
                    : data_parallel_shapes(profile, **type, catalog, std::clamp(request.most_machines, 1, kWidest));
  if (!shapes) return unexpected(shapes.error());
  if (request.uneven) shapes = with_uneven(*shapes);
  const double batch = profile.pipeline ? profile.pipeline->global_batch : 0;
  if (!profile.pipeline && !profile.recovery)
    return fail("profile {} says nothing of what a change of the cluster costs (recovery_s)", profile.name);
  auto costs = profile.pipeline ? MigrationCosts::make(profile, *shapes, request.migration)
                                : Result<MigrationCosts>(MigrationCosts::constant(*shapes, *profile.recovery));
  if (!costs) return unexpected(costs.error());
  return Job{.shapes = *std::move(shapes),
             .costs = *std::move(costs),
             .global_batch = batch,
             .type = type_name,
             .spot = (*type)->spot ? (*type)->spot->rate : (*type)->on_demand->rate,
             .on_demand = (*type)->on_demand->rate};
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
