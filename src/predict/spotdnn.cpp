// spotDNN's model of asynchronous training: docs/models.md#spotdnn.
#include "predict/cycles.h"

namespace mayfly {

double spotdnn_contention(const ContentionFit& fit, int workers) {
  // The paper states P in [0, 1] but clamps only above; small clusters would get a negative probability.
  return std::clamp(fit.slope * std::sqrt(static_cast<double>(workers)) + fit.offset, 0.0, 1.0);
}

double spotdnn_bandwidth(const ContentionFit& fit, int workers, double request, double server_rate) {
  const double fair = server_rate / workers;
  if (request <= fair) return request;
  const double contended = spotdnn_contention(fit, workers);
  return contended * fair + (1 - contended) * request;
}

Speed spotdnn_speed(const Workload& job, std::span<const Group> groups, const ServerPool& servers) {
  const int workers = worker_count(groups);
  CycleSum sum;
  for (const auto& [worker, count] : groups) {
    if (count == 0) continue;
    const double granted = spotdnn_bandwidth(*job.contention, workers, worker->rate, servers.nic * servers.count);
    const double exchange = 2 * job.parameters / granted;
    const double alone = 2 * job.parameters / worker->rate;
    const double cycle = worker->compute + exchange + worker->pcie;
    sum.add(count, cycle, worker->batch, worker->relative_sd);
    sum.book(worker->compute_part, count, cycle, worker->compute);
    sum.book(Part::pcie, count, cycle, worker->pcie);
    // Uncontended, the worker's own pace is the limit; contended, the whole exchange waits for the server's link.
    sum.book(exchange > alone ? Part::server_network : Part::worker_network, count, cycle, exchange);
  }
  return sum.total();
}

}  // namespace mayfly
