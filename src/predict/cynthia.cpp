// Cynthia's model: docs/models.md#cynthia. Network contention enters once, as shared bandwidth; the utilisation factor
// u stands for the server's CPU only (the published pair would count the same contention twice).
#include "predict/cycles.h"

namespace mayfly {
namespace {

/// Share of their pace that workers keep when the servers' CPUs cannot follow.
double cpu_utilisation(const CynthiaProfile& profile, double capability, const ServerPool& servers) {
  if (!profile.server_gflops_used || !profile.base_gflops || servers.gflops <= 0) return 1;
  const double demand = *profile.server_gflops_used * capability / *profile.base_gflops;
  return std::min(1.0, servers.gflops * servers.count / demand);
}

}  // namespace

Speed cynthia_speed(const Workload& job, std::span<const Group> groups, const ServerPool& servers) {
  const CynthiaProfile& profile = *job.cynthia;
  const int workers = worker_count(groups);
  const double link = servers.nic * servers.count;
  double capability = 0;
  double slowest = 0;
  double batch = 0;
  for (const auto& [worker, count] : groups) {
    if (count == 0) continue;
    capability += count * worker->gflops;
    slowest = slowest == 0 ? worker->gflops : std::min(slowest, worker->gflops);
    batch += count * worker->batch;
  }
  const double u = cpu_utilisation(profile, capability, servers);
  if (job.sync == Sync::asp) {
    CycleSum sum;
    for (const auto& [worker, count] : groups) {
      if (count == 0) continue;
      const double compute = profile.work_gflop / worker->gflops;
      const double exchange = 2 * job.parameters / std::min(worker->nic, link / workers);
      const double cycle = compute / u + exchange;
      sum.add(count, cycle, worker->batch, worker->relative_sd);
      sum.book(Part::compute, count, cycle, compute);
      sum.book(Part::server_cpu, count, cycle, compute / u - compute);
      sum.book(link / workers < worker->nic ? Part::server_network : Part::worker_network, count, cycle, exchange);
    }
    return sum.total();
  }
  const double compute = profile.work_gflop / (workers * slowest);
  const double exchange = 2 * workers * job.parameters / link;
  Speed speed;
  const double step = std::max(compute / u, exchange);
  speed.updates_per_s = 1 / step;
  speed.batch = batch;
  speed.samples_per_s = batch / step;
  speed.breakdown[static_cast<std::size_t>(Part::compute)] = compute;
  speed.breakdown[static_cast<std::size_t>(Part::server_cpu)] = compute / u - compute;
  speed.breakdown[static_cast<std::size_t>(Part::server_network)] = exchange;
  return speed;
}

}  // namespace mayfly
