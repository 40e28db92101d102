#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "base/result.h"
#include "job/profile.h"
#include "predict/fabric.h"

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

/// Reducing gradients among a machine's own GPUs, by how long they compute: docs/models.md#several-gpus.
struct Interconnect {
  double always = 0;    ///< s, whatever they compute: latency and traffic
  double waiting = 0;   ///< share of computing, for the slowest of them
  double hideable = 0;  ///< s, of the traffic
  double hides = 0;     ///< share of computing behind which that may hide
  double at(double compute) const { return always + waiting * compute - std::min(hideable, hides * compute); }
  bool operator==(const Interconnect&) const = default;
};

/// A machine of one kind at work on one job.
struct Worker {
  double compute = 0;  ///< s, one step without any exchange; the loader's pace where that is slower
  Part compute_part = Part::compute;
  double batch = 0;             ///< samples per step of the whole machine
  double fixed = 0;             ///< s of `compute` that fewer samples do not shorten
  double pcie = 0;              ///< s, gradients between its GPUs and its memory, both ways
  Interconnect interconnect{};  ///< reducing them among its own GPUs
  double rate = 0;              ///< B/s towards an idle server
  double nic = 0;               ///< B/s, its own link
  double gflops = 0;            ///< Cynthia's capability; 0 = not given
  double relative_sd = 0;       ///< of the step time; 0 = not known
  Basis basis = Basis::given;
  std::optional<RingLinks> ring{};  ///< where the fabric tells; else its nic, and latency and overlap of the job
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
  double global_batch = 0;               ///< of a step with a barrier or of a pipeline; 0: that of the largest machine
  bool scale_batch = false;              ///< with a barrier every machine adds its own
  double most_batch = 1e300;             ///< and the step grows no further
};

/// How fast a cluster trains.
struct Speed {
  double updates_per_s = 0;  ///< normalized iterations per second; its inverse is the step time
  double samples_per_s = 0;
  double batch = 0;                        ///< weighted-average batch: samples per update
  double cc = 0;                           ///< convergence coefficient, 0 (one worker does it all) to 1
  double sd_by_updates = 0;                ///< mean of the machines' relative_sd, by their shares of the updates,
  double sd_by_samples = 0;                ///< and by those of the samples
  std::array<double, kParts> breakdown{};  ///< s busy in a cycle; parts may overlap where training is synchronous

  Part bottleneck() const;
};

/// Samples a second of the part of its step that fewer samples would shorten: by it a shared step is dealt out.
inline double pace_of(const Worker& worker) { return worker.batch / (worker.compute - worker.fixed); }
/// All workers make one step of so many samples together; else each brings its own batch.
bool shares_step(const Workload& job);
/// Samples that a worker gets of such a step.
std::optional<double> share_of_step(const Workload& job, std::span<const Group> groups, const Worker& worker);

/// How a worker reduces gradients with others, without the job's latency.
RingLinks ring_of(const Workload& job, const Worker& worker);

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
