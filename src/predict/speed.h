#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "base/result.h"
#include "job/profile.h"

// Models: docs/models.md. Inside predict/ a figure is a plain double in SI units (seconds, bytes, samples): the
// planner calls these functions millions of times, and every symbol is one the documentation defines.
namespace mayfly {

enum class Predictor { queue, spotdnn, cynthia, additive, lambda };
std::string_view name(Predictor predictor);
Result<Predictor> parse_predictor(std::string_view text);

/// Where a worker's cycle goes. The bottleneck is the largest share.
enum class Part { compute, pcie, interconnect, worker_network, server_network, server_cpu, fetch, prep, storage };
inline constexpr std::size_t kParts = 9;
std::string_view name(Part part);

/// A machine of one kind at work on one job.
struct Worker {
  double compute = 0;  ///< s, one step without any exchange; the loader's pace where that is slower
  Part compute_part = Part::compute;
  double batch = 0;         ///< samples per step of the whole machine
  double pcie = 0;          ///< s, gradients between its GPUs and its memory, both ways
  double interconnect = 0;  ///< s, reducing gradients among its own GPUs
  double rate = 0;          ///< B/s towards an idle server
  double nic = 0;           ///< B/s, its own link
  double gflops = 0;        ///< Cynthia's capability; 0 = not given
  double relative_sd = 0;   ///< of the step time; 0 = not known
  Basis basis = Basis::given;
  bool operator==(const Worker&) const = default;
};

/// `count` workers of one kind.
struct Group {
  const Worker* worker = nullptr;
  int count = 0;
};

/// Identical parameter servers that share the model evenly. None: the workers reduce among themselves.
struct ServerPool {
  int count = 0;
  double nic = 0;     ///< B/s of one, each direction
  double cores = 0;   ///< of one
  double gflops = 0;  ///< of one; Cynthia
};

/// The job's side of every model.
struct Workload {
  Sync sync = Sync::asp;
  Exchange exchange = Exchange::server;
  double parameters = 0;  ///< bytes of one gradient
  double tensors = 1;
  double latency = 0;        ///< s per tensor and exchange
  double overlap = 0;        ///< share of the backward pass that hides an exchange
  double server_cpu = 0;     ///< core-seconds per update
  double server_demand = 0;  ///< s per update of one whole server, as calibrated; 0 = derive
  bool in_turn = false;      ///< servers answer one after the other, as mayfly's do; else all share a link evenly
  std::optional<ContentionFit> contention{};
  std::optional<CynthiaProfile> cynthia{};
  std::span<const ShapeSpeed> shapes{};  ///< pipelines: the measured shapes; owned by the profile
  double global_batch = 0;
};

/// How fast a cluster trains.
struct Speed {
  double updates_per_s = 0;  ///< normalized iterations per second; its inverse is the step time
  double samples_per_s = 0;
  double batch = 0;                        ///< weighted-average batch: samples per update
  double cc = 0;                           ///< convergence coefficient, 0 (one worker does it all) to 1
  std::array<double, kParts> breakdown{};  ///< s busy in a cycle; parts may overlap where training is synchronous

  Part bottleneck() const;
};

/// Requires at least one worker, and what missing_for() says the predictor needs.
Speed cluster_speed(Predictor predictor, const Workload& job, std::span<const Group> groups, const ServerPool& servers);

/// What the profile lacks for this predictor, in words; nothing if it can be used.
std::optional<std::string_view> missing_for(Predictor predictor, const Workload& job, const ServerPool& servers);

Speed additive_speed(const Workload& job, std::span<const Group> groups, const ServerPool& servers);
Speed spotdnn_speed(const Workload& job, std::span<const Group> groups, const ServerPool& servers);
Speed cynthia_speed(const Workload& job, std::span<const Group> groups, const ServerPool& servers);
Speed queue_speed(const Workload& job, std::span<const Group> groups, const ServerPool& servers);

/// Updates per second that these servers can take from any number of asynchronous workers, by the queue model.
double queue_server_limit(const Workload& job, const ServerPool& servers);

/// spotDNN (8), (9): the bandwidth granted to each of n workers, B/s, and the probability of contention behind it.
double spotdnn_contention(const ContentionFit& fit, int workers);
double spotdnn_bandwidth(const ContentionFit& fit, int workers, double request, double server_rate);

}  // namespace mayfly
