#include "predict/speed.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "predict/cycles.h"

namespace mayfly {
namespace {

constexpr std::array kPredictors{Predictor::queue, Predictor::spotdnn, Predictor::cynthia, Predictor::additive,
                                 Predictor::lambda};

}  // namespace

std::string_view name(Predictor predictor) {
  switch (predictor) {
    case Predictor::queue:
      return "queue";
    case Predictor::spotdnn:
      return "spotdnn";
    case Predictor::cynthia:
      return "cynthia";
    case Predictor::additive:
      return "additive";
    case Predictor::lambda:
      break;
  }
  return "lambda";
}

Result<Predictor> parse_predictor(std::string_view text) {
  for (const Predictor predictor : kPredictors) {
    if (text == name(predictor)) return predictor;
  }
  return fail("predictor '{}': want queue, spotdnn, cynthia, additive or lambda", text);
}

std::string_view name(Part part) {
  constexpr std::array<std::string_view, kParts> kNames{
      "compute", "pcie", "interconnect", "worker-network", "server-network", "server-cpu", "fetch", "prep", "storage"};
  return kNames[static_cast<std::size_t>(part)];
}

Part Speed::bottleneck() const {
  return static_cast<Part>(std::max_element(breakdown.begin(), breakdown.end()) - breakdown.begin());
}

Speed additive_speed(const Workload& job, std::span<const Group> groups, const ServerPool&) {
  CycleSum sum;
  for (const auto& [worker, count] : groups) {
    if (count == 0) continue;
    // Rings over a network that is not known have no speed.
    if (job.exchange == Exchange::all_reduce && std::isinf(ring_of(job, *worker).once) && worker_count(groups) > 1)
      return {};
    const double exchange = worker->rate > 0 ? 2 * job.parameters / worker->rate : 0;
    const double cycle = worker->compute + worker->pcie + worker->interconnect.at(worker->compute) + exchange;
    sum.add(count, cycle, worker->batch, worker->relative_sd);
    sum.book(worker->compute_part, count, cycle, worker->compute);
    sum.book(Part::pcie, count, cycle, worker->pcie);
    sum.book(Part::interconnect, count, cycle, worker->interconnect.at(worker->compute));
    sum.book(Part::worker_network, count, cycle, exchange);
  }
  return sum.total();
}

namespace {

Speed speed_by(Predictor predictor, const Workload& job, std::span<const Group> groups, const ServerPool& servers) {
  switch (predictor) {
    case Predictor::queue:
      return queue_speed(job, groups, servers);
    case Predictor::spotdnn:
      return spotdnn_speed(job, groups, servers);
    case Predictor::cynthia:
      return cynthia_speed(job, groups, servers);
    case Predictor::additive:
      return additive_speed(job, groups, servers);
    case Predictor::lambda:
      break;
  }
  MAYFLY_CHECK(false, "the lambda predictor speaks of functions, not machines");
}

/// Where all make one step together: by what each could do alone.
double sd_together(std::span<const Group> groups) {
  double sum = 0;
  double weight = 0;
  for (const auto& [worker, count] : groups) {
    const double share = worker->compute > 0 ? count * worker->batch / worker->compute : count;
    sum += share * worker->relative_sd;
    weight += share;
  }
  return weight > 0 ? sum / weight : 0;
}

}  // namespace

Speed cluster_speed(Predictor predictor, const Workload& job, std::span<const Group> groups,
                    const ServerPool& servers) {
  Speed speed = speed_by(predictor, job, groups, servers);
  if (speed.sd_by_updates == 0) speed.sd_by_updates = speed.sd_by_samples = sd_together(groups);
  return speed;
}

std::optional<std::string_view> missing_for(Predictor predictor, const Workload& job, const ServerPool& servers) {
  if (predictor == Predictor::lambda) return "lambda predicts functions, not machines";
  if (job.exchange == Exchange::pipeline) {
    if (predictor != Predictor::queue) return "pipeline speeds are measured by shape; use --predictor queue";
    return std::nullopt;
  }
  if (job.parameters <= 0) return "job.parameters_mb";
  const bool by_server = servers.count > 0;
  if (by_server && servers.nic <= 0 && predictor != Predictor::additive) return "the server's network";
  switch (predictor) {
    case Predictor::spotdnn:
      if (!job.contention) return "contention {slope, offset}";
      if (!by_server) return "a parameter server (spotdnn knows no other exchange)";
      if (job.sync != Sync::asp) return "sync: asp (spotdnn knows no barrier)";
      break;
    case Predictor::cynthia:
      if (!job.cynthia) return "cynthia {work_gflop}";
      if (!by_server) return "a parameter server (cynthia knows no other exchange)";
      break;
    case Predictor::queue:
      if (by_server && job.server_cpu > 0 && servers.cores <= 0) return "the server's cores";
      break;
    case Predictor::additive:
    case Predictor::lambda:
      break;
  }
  return std::nullopt;
}

}  // namespace mayfly
