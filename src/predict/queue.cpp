// mayfly's own model, from first principles: docs/models.md#queue.
#include <array>
#include <limits>

#include "base/check.h"
#include "predict/closed_queue.h"
#include "predict/cycles.h"

namespace mayfly {
namespace {

/// A backward pass computes two products per layer (gradients of inputs and of weights) where the forward computes one.
constexpr double kBackwardShare = 2.0 / 3.0;
/// Kinds of machine in one cluster; the planner never mixes more.
constexpr std::size_t kMostClasses = 64;

/// One server resource and how long an update keeps it busy.
struct Demand {
  Part part = Part::server_network;
  double busiest = 0;
  double total = 0;  ///< of all resources one after the other
};

Demand server_demand(const Workload& job, const ServerPool& servers) {
  const double network = job.parameters / (servers.nic * servers.count);
  const double cpu = job.server_cpu > 0 ? job.server_cpu / (servers.cores * servers.count) : 0;
  Demand demand{.busiest = network, .total = 2 * network + cpu};
  if (cpu > demand.busiest) demand = {.part = Part::server_cpu, .busiest = cpu, .total = demand.total};
  const double calibrated = job.server_demand / servers.count;
  if (calibrated > demand.busiest) {
    demand.part = network >= cpu ? Part::server_network : Part::server_cpu;
    demand.total += calibrated - demand.busiest;
    demand.busiest = calibrated;
  }
  return demand;
}

/// The exchange of one worker with idle servers: gradients up, parameters down, at its own pace, but never faster than
/// the servers serve one.
double exchange_alone(const Workload& job, const Worker& worker, const Demand& demand) {
  return std::max(2 * job.parameters / worker.rate + job.tensors * job.latency, demand.total);
}

/// What of a worker's push happens while it still computes.
double hidden_push(const Workload& job, const Worker& worker) {
  return std::min(job.parameters / worker.rate, job.overlap * kBackwardShare * worker.compute);
}

/// Of a cycle, what a worker does by itself.
double own_time(const Worker& worker) { return worker.compute + worker.pcie + worker.interconnect.at(worker.compute); }

/// Rates at which classes cycle whose `think` holds everything but the wait for others. Where the servers' link is what
/// they meet at, its two ways are two stations, each fast enough for several of the fastest worker; what slower links
/// take longer is thinking. Else the busiest resource is one station.
void cycle_rates(const Workload& job, std::span<const Group> groups, const ServerPool& servers, const Demand& demand,
                 std::span<CycleClass> classes, std::span<double> rates) {
  double fastest = 0;
  for (const auto& [worker, count] : groups) {
    if (count > 0) fastest = std::max(fastest, worker->rate);
  }
  const double link = servers.nic * servers.count;
  const double way = job.parameters / std::min(fastest, link);
  const bool by_link = demand.busiest == job.parameters / link && worker_count(groups) <= kMostPaired;
  for (CycleClass& c : classes) {
    c.service = by_link ? way : demand.busiest;
    c.think -= by_link ? 2 * way : demand.busiest;
  }
  if (by_link) {
    closed_pair_rates(classes, std::max(1.0, link / fastest), rates);
  } else {
    closed_queue_rates(classes, rates);
  }
}

/// Servers that answer in turn: no worker meets others by chance. All wait equally long for their turn, and only if
/// all together ask for more than the busiest resource gives: the wait W with sum n_i / (think_i + W) = 1 / busiest.
void rates_in_turn(std::span<const CycleClass> classes, double busiest, std::span<double> rates) {
  double wait = 0;
  // The sum falls with W and is convex: Newton's steps from the left never pass the solution.
  for (int i = 0; i < 50; ++i) {
    double asked = 0, slope = 0;
    for (const CycleClass& c : classes) {
      asked += c.count / (c.think + wait);
      slope += c.count / ((c.think + wait) * (c.think + wait));
    }
    const double step = (asked - 1 / busiest) / slope;
    if (step <= 1e-12 * (wait + busiest)) break;
    wait += step;
  }
  double sum = 0;
  for (std::size_t i = 0; i < classes.size(); ++i) sum += rates[i] = classes[i].count / (classes[i].think + wait);
  // The last bits, so that no mix of machines is above the limit.
  for (double& rate : rates) rate *= std::min(1.0, 1 / (busiest * sum));
}

Speed asynchronous(const Workload& job, std::span<const Group> groups, const ServerPool& servers) {
  MAYFLY_CHECK(groups.size() <= kMostClasses, "at most 64 kinds of machine in one cluster");
  const Demand demand = server_demand(job, servers);
  std::array<CycleClass, kMostClasses> classes;
  std::array<double, kMostClasses> alone;
  std::array<double, kMostClasses> rates;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const Worker& worker = *groups[i].worker;
    alone[i] = exchange_alone(job, worker, demand) - hidden_push(job, worker);
    classes[i] = {.think = own_time(worker) + alone[i], .count = groups[i].count};
  }
  if (job.in_turn) {
    rates_in_turn({classes.data(), groups.size()}, demand.busiest, {rates.data(), groups.size()});
  } else {
    cycle_rates(job, groups, servers, demand, {classes.data(), groups.size()}, {rates.data(), groups.size()});
  }
  CycleSum sum;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const auto& [worker, count] = groups[i];
    if (count == 0) continue;
    const double cycle = count / rates[i];
    const double own = own_time(*worker);
    sum.add(count, cycle, worker->batch, worker->relative_sd);
    sum.book(worker->compute_part, count, cycle, worker->compute);
    sum.book(Part::pcie, count, cycle, worker->pcie);
    sum.book(Part::interconnect, count, cycle, worker->interconnect.at(worker->compute));
    sum.book(Part::worker_network, count, cycle, std::max(0.0, alone[i] - demand.busiest));
    sum.book(demand.part, count, cycle, cycle - own - std::max(0.0, alone[i] - demand.busiest));
  }
  return sum.total();
}

/// What follows computing in a step with a barrier.
struct Exchanged {
  double time = 0;
  double hideable = 0;  ///< that much of it may happen during the backward pass
  double longer = 0;    ///< share by which waiting for each other lengthens the step
  Part part = Part::worker_network;
};

/// One barrier per step. Its samples are dealt out by speed, so that all compute equally long: the longest of the
/// workers' fixed times, then sum b_i / sum (b_i / variable_i). Then comes of the exchange what the backward pass could
/// not hide.
Speed synchronous(const Workload& job, std::span<const Group> groups, double overlap, const Exchanged& exchange) {
  Speed speed;
  double together = 0;  // samples/s of all, computing
  double squares = 0;
  double most = 0;
  double sum = 0;
  double fixed = 0;
  const Worker* fastest = nullptr;
  double quickest = 0;
  double pcie = 0;
  for (const auto& [worker, count] : groups) {
    if (count == 0) continue;
    const double own = pace_of(*worker);
    if (own > quickest) {
      fastest = worker;
      quickest = own;
    }
    most = std::max(most, worker->batch);
    sum += count * worker->batch;
    fixed = std::max(fixed, worker->fixed);
    together += count * own;
    squares += count * own * own;
    pcie = std::max(pcie, worker->pcie);
  }
  MAYFLY_CHECK(fastest != nullptr, "a step needs a worker, and each worker a pace");
  speed.batch = job.scale_batch ? std::min(sum, job.most_batch) : job.global_batch > 0 ? job.global_batch : most;
  const double compute = fixed + speed.batch / together;
  double interconnect = 0;
  for (const auto& [worker, count] : groups) {
    if (count > 0) interconnect = std::max(interconnect, worker->interconnect.at(compute));
  }
  const double hidden = std::min(exchange.hideable, overlap * kBackwardShare * compute);
  const double waiting = exchange.longer * (compute + interconnect);
  const double step = compute + pcie + interconnect + waiting + exchange.time - hidden;
  speed.updates_per_s = 1 / step;
  speed.samples_per_s = speed.batch / step;
  const double first = quickest / together;
  speed.cc = std::sqrt(std::max(0.0, 1 - 2 * first + squares / (together * together)));
  speed.breakdown[static_cast<std::size_t>(fastest->compute_part)] += compute;
  speed.breakdown[static_cast<std::size_t>(Part::pcie)] += pcie;
  speed.breakdown[static_cast<std::size_t>(Part::interconnect)] += interconnect;
  speed.breakdown[static_cast<std::size_t>(exchange.part)] += exchange.time + waiting;
  return speed;
}

/// With a barrier all workers pull at once and, once all have computed, push at once, so that no push passes
/// another's pull: each way lasts as long as the servers take for all, or the slowest worker for itself. Where
/// they pull in turn, the first computes and pushes while others still pull, and what follows the last pull is one
/// worker's push, or the rest of what the servers have to do for all.
Speed synchronous_servers(const Workload& job, std::span<const Group> groups, const ServerPool& servers) {
  const Demand demand = server_demand(job, servers);
  const double network = job.parameters / (servers.nic * servers.count);
  const int workers = worker_count(groups);
  double at_worker = 0;
  for (const auto& [worker, count] : groups) {
    if (count > 0) at_worker = std::max(at_worker, job.parameters / worker->rate);
  }
  const double pull = std::max(workers * network, at_worker);
  const double push = std::max(workers * demand.busiest, at_worker);
  const bool server_bound = workers * demand.busiest > at_worker;
  const double last_push = std::max(at_worker, demand.busiest);
  const double exchange = job.in_turn ? std::max(pull + last_push, std::max(network, at_worker) + push) : pull + push;
  return synchronous(job, groups, job.overlap,
                     {.time = exchange + job.tensors * job.latency,
                      .hideable = job.in_turn ? last_push : push,
                      .part = server_bound ? demand.part : Part::worker_network});
}

/// Ring: every tensor pays its latency, and 2 (p - 1) / p of the gradient crosses the slowest link.
Speed ring(const Workload& job, std::span<const Group> groups) {
  const int machines = worker_count(groups);
  std::optional<RingLinks> links;
  for (const auto& [worker, count] : groups) {
    if (count > 0) links = links ? slower_links(*links, ring_of(job, *worker)) : ring_of(job, *worker);
  }
  const double exchange = machines == 1 ? 0 : job.tensors * job.latency + ring_traffic(*links, machines);
  return synchronous(
      job, groups, links->hides / kBackwardShare,
      {.time = exchange, .hideable = links->hideable * exchange, .longer = ring_stretch(*links, machines)});
}

/// The best measured shape (data-parallel width x stages) that fits; machines beyond it idle.
Speed best_shape(const Workload& job, std::span<const Group> groups) {
  const int machines = worker_count(groups);
  Speed speed;
  for (const ShapeSpeed& shape : job.shapes) {
    if (shape.data_parallel * shape.stages > machines) continue;
    const double samples = shape.speed ? shape.speed->value : job.global_batch / shape.iteration.count();
    if (samples <= speed.samples_per_s) continue;
    speed.samples_per_s = samples;
    speed.updates_per_s = samples / job.global_batch;
    speed.breakdown[static_cast<std::size_t>(Part::compute)] = 1 / speed.updates_per_s;
  }
  speed.batch = job.global_batch;
  return speed;
}

}  // namespace

bool shares_step(const Workload& job) {
  if (job.global_batch <= 0 || job.scale_batch || job.exchange == Exchange::pipeline) return false;
  return job.sync == Sync::bsp || job.exchange == Exchange::all_reduce;
}

std::optional<double> share_of_step(const Workload& job, std::span<const Group> groups, const Worker& worker) {
  if (!shares_step(job)) return {};
  double all = 0;
  for (const auto& [other, count] : groups) all += count > 0 ? count * pace_of(*other) : 0;
  return all > 0 ? job.global_batch * pace_of(worker) / all : 0;
}

RingLinks ring_of(const Workload& job, const Worker& worker) {
  if (worker.ring) return *worker.ring;
  const double once = worker.nic > 0 ? job.parameters / worker.nic : std::numeric_limits<double>::infinity();
  return {.once = once, .hides = job.overlap * kBackwardShare};
}

double queue_server_limit(const Workload& job, const ServerPool& servers) {
  return 1 / server_demand(job, servers).busiest;
}

Speed queue_speed(const Workload& job, std::span<const Group> groups, const ServerPool& servers) {
  if (job.exchange == Exchange::pipeline) return best_shape(job, groups);
  if (servers.count == 0) return ring(job, groups);
  return job.sync == Sync::asp ? asynchronous(job, groups, servers) : synchronous_servers(job, groups, servers);
}

}  // namespace mayfly
