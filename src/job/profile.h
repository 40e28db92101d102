#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/document.h"
#include "base/units.h"
#include "job/measured_profile.h"
#include "job/recipe.h"

namespace mayfly {

/// Every worker waits for the others each step (bsp), or none does (asp).
enum class Sync { asp, bsp };
/// How gradients meet: through parameter servers, around a ring, or along a pipeline of stages.
enum class Exchange { server, all_reduce, pipeline };
std::string_view name(Sync sync);
std::string_view name(Exchange exchange);

struct Origin {
  Basis basis = Basis::given;
  std::string source{};
  std::string date{};
  std::string job{};                 ///< hash of the job file's text that was measured; empty: none was
  std::string machine{};             ///< which was measured on, as machine_name() has it
  std::vector<std::string> notes{};  ///< what is missing or assumed
  bool operator==(const Origin&) const = default;
};

/// One machine training alone (with a server that no other worker uses, where the job has one).
struct TypeProfile {
  double batch = 0;                         ///< samples per step of the whole machine
  std::optional<Seconds> step{};            ///< whole step: compute and exchange
  std::optional<Seconds> compute{};         ///< the part of it before anything leaves the machine
  double relative_sd = 0;                   ///< of the step time, between repetitions; 0 = not known
  std::optional<double> gflops{};           ///< what it reaches multiplying matrices; Cynthia's capability
  std::optional<double> cores{};            ///< of this computer that took part
  std::vector<BatchPoint> batches{};        ///< the step at other batch sizes
  std::optional<BytesPerSecond> network{};  ///< as measured, overriding the catalogue
  Basis basis = Basis::measured;
  bool operator==(const TypeProfile&) const = default;
};

struct LinkProfile {
  std::optional<BytesPerSecond> request{};  ///< what one worker draws from an idle server
  std::optional<BytesPerSecond> pcie{};     ///< overrides the catalogue
  Seconds latency{0};                       ///< per tensor and exchange
  double overlap = 0;                       ///< share of the backward pass during which gradients may travel
  std::optional<Basis> basis{};
  bool operator==(const LinkProfile&) const = default;
};

/// The parameter server as this job meets it.
struct ServerProfile {
  std::string type{};                       ///< default server type; may be empty
  std::optional<BytesPerSecond> network{};  ///< overrides the catalogue
  std::optional<Seconds> cpu{};             ///< core-seconds per update
  std::optional<Seconds> demand{};          ///< busy time per update of one whole server, as calibrated
  bool in_turn = false;                     ///< it answers one worker after the other
  std::optional<UsdPerHour> price{};        ///< overrides the catalogue
  std::optional<Basis> basis{};
  bool operator==(const ServerProfile&) const = default;
};

/// spotDNN: probability that the server link is contended, slope * sqrt(n) + offset.
struct ContentionFit {
  double slope = 0;
  double offset = 0;
  bool operator==(const ContentionFit&) const = default;
};

/// spotDNN (10): GPU memory -> batch, 2^floor(log2(slope * memory + offset)).
struct BatchFit {
  double samples_per_mb = 0;
  double offset = 0;
  bool operator==(const BatchFit&) const = default;
};

/// Loss after j steps. docs/models.md#loss says what each form means.
struct LossCurve {
  enum class Form { spotdnn, cynthia, common_start };
  Form form = Form::spotdnn;
  double shift = 0;                   ///< spotdnn gamma1
  double batch_slope = 0;             ///< spotdnn gamma2 (negative); common-start: the same role
  double scale = 0;                   ///< spotdnn gamma3, cynthia beta0
  std::optional<double> cc_offset{};  ///< spotdnn gamma4 of the final paper; absent: the draft's four-coefficient form
  double floor = 0;                   ///< spotdnn gamma5 (draft gamma4), cynthia beta1
  double initial = 0;                 ///< common-start: loss before the first step
  /// common-start: the steps to a loss grow with the workers to this power; absent: 0.5 asynchronously, as published,
  /// and 0 with a barrier, where only the batch tells one worker from many.
  std::optional<double> workers_power{};
  double relative_sd = 0;  ///< of the number of steps to a loss; 0 = not known
  double batch_min = 0;    ///< weighted batches the curve was fitted for; it says nothing of others
  double batch_max = 1e300;
  bool operator==(const LossCurve&) const = default;
};

struct CynthiaProfile {
  double work_gflop = 0;                       ///< one iteration over the whole mini-batch
  std::optional<double> base_gflops{};         ///< the profiled worker
  std::optional<double> server_gflops_used{};  ///< server CPU drawn by that one worker
  bool operator==(const CynthiaProfile&) const = default;
};

/// lambdaDNN: training on functions of `m` MiB.
struct ServerlessProfile {
  std::string platform{};  ///< key of the catalogue's functions
  int memory_mib_min = 0;
  int memory_mib_max = 0;
  int memory_mib_step = 64;
  double rate_slope = 0;        ///< samples/s per MiB
  double rate_offset = 0;       ///< samples/s
  double local_batch = 0;       ///< smallest that fills the function's CPU
  double global_batch_max = 0;  ///< largest with which the job still converges
  double load_slope = 0;        ///< MB/s per MiB, function <- object store
  double load_offset = 0;
  double load_saturation_mib = 0;         ///< memory above which loading is no faster; 0 = none
  std::optional<BytesPerSecond> store{};  ///< object store's limit
  BytesPerSecond function_network{};      ///< function <-> server, alone
  BytesPerSecond server_network{};        ///< shared by all functions
  bool whole_iterations = true;           ///< an epoch drops its last partial batch
  Seconds restart{0};                     ///< stall at each time-out
  bool operator==(const ServerlessProfile&) const = default;
};

/// Sizes of one checkpoint's files, MB, and the time it took where that was measured.
struct CheckpointSize {
  double data_mb = 0;
  double graph_mb = 0;
  std::optional<Seconds> stall{};  ///< training stood still
  std::optional<Seconds> write{};  ///< in the background
  bool operator==(const CheckpointSize&) const = default;
};

struct ShapeSpeed {
  int data_parallel = 0;
  int stages = 0;
  Seconds iteration{};
  std::optional<SamplesPerSecond> speed{};
  bool operator==(const ShapeSpeed&) const = default;
};
struct LayerRun {
  int count = 0;
  double parameters = 0;
  bool operator==(const LayerRun&) const = default;
};
struct TransferPoint {
  Bytes size{};
  Seconds time{};
  bool operator==(const TransferPoint&) const = default;
};
struct BuildTime {
  int stages = 0;
  Seconds time{};
  bool operator==(const BuildTime&) const = default;
};
/// Rebuilding process groups. `per`: what the base time multiplies; a step function of the data-parallel width has one
/// entry per step in `from_width`.
struct GroupCost {
  std::string per{};  ///< "groups" (d + p + 1 + d p), "machines" (d p) or "width"
  Seconds fixed{};
  Seconds join{};
  Seconds leave{};
  std::vector<std::pair<int, Seconds>> from_width{};
  double join_factor = 1;
  double leave_factor = 1;
  bool operator==(const GroupCost&) const = default;
};
struct RestartCost {
  Seconds rendezvous{};
  Seconds join_extra{};
  Seconds process{};
  Seconds checkpoint{};
  GroupCost group{};
  bool operator==(const RestartCost&) const = default;
};
/// Bamboo's neighbour redundancy.
struct RedundancyProfile {
  Seconds start{};
  Seconds global_rendezvous{};
  Seconds local_rendezvous{};
  std::optional<int> stages{};  ///< the fixed depth; absent: min_stages, where max_stages is the same
  double slowdown = 1;          ///< of a step, while a machine does the work of two
  int capacity = 0;
  int on_demand_gpus = 0;
  Seconds on_demand_step{};
  std::optional<double> full_run_steps{};
  bool operator==(const RedundancyProfile&) const = default;
};

/// Pipelines of identical machines: measured speeds by shape, and what a change of shape costs.
struct PipelineProfile {
  std::string type{};  ///< instance type of the measurements
  double global_batch = 0;
  std::optional<double> micro_batch{};
  double bytes_per_parameter = 0;
  std::vector<LayerRun> layers{};
  int min_stages = 1;
  int max_stages = 1;
  int min_data_parallel = 1;
  std::vector<int> excluded_stages{};
  std::vector<ShapeSpeed> speeds{};
  std::vector<TransferPoint> transfers{};
  std::vector<BuildTime> builds{};
  std::optional<RestartCost> restart{};
  std::optional<RedundancyProfile> redundancy{};
  bool operator==(const PipelineProfile&) const = default;
};

/// What is known of a job's speed, loss and needs. Format: docs/formats.md#profile.
struct Profile {
  std::string name{};
  Origin origin{};
  std::string model{};
  std::string dataset{};
  std::optional<Samples> samples{};  ///< of one epoch
  std::optional<Bytes> dataset_size{};
  std::optional<Bytes> parameters{};  ///< = bytes of one gradient
  std::optional<double> tensors{};
  std::optional<double> gflops{};  ///< as TFProf counts them, in units of 2^30; for the step-time regression
  Recipe recipe{};
  Sync sync = Sync::asp;
  Exchange exchange = Exchange::server;
  /// Samples of a step: with a barrier over all machines, else of one worker. Absent: those of the largest machine.
  std::optional<double> batch{};
  bool scale_batch = false;  ///< with a barrier every machine adds its own batch to the step, up to most_batch
  double most_batch = 1e300;
  std::map<std::string, TypeProfile, std::less<>> types{};
  LinkProfile link{};
  ServerProfile server{};
  std::optional<ContentionFit> contention{};
  std::optional<BatchFit> batch_fit{};
  std::optional<LossCurve> loss{};
  std::optional<CynthiaProfile> cynthia{};
  std::optional<ServerlessProfile> serverless{};
  LoaderProfile loader{};
  std::optional<CheckpointSize> checkpoint{};
  std::optional<PipelineProfile> pipeline{};
  std::optional<MemoryProfile> memory{};
  std::optional<LayersProfile> layers{};
  std::optional<StartProfile> start{};
  std::optional<StallsProfile> stalls{};
  std::optional<Seconds> recovery{};  ///< lost when the cluster changes under way
  bool operator==(const Profile&) const = default;
};

Result<Profile> parse_profile(std::string_view text, const std::string& file);
Result<Profile> load_profile(const std::filesystem::path& path);

}  // namespace mayfly
