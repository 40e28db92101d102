#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/document.h"
#include "base/units.h"

namespace mayfly {

/// What the `train` block of a job file says. Format: docs/formats.md#job. Paths are as written, relative to the job
/// file's folder.

struct ModelSpec {
  std::string name{};         ///< mlp, cnn, resnet, gpt, torchscript, dials, count or script: the job's own program
  std::string file{};         ///< torchscript; of a script what its first worker says of it
  std::vector<int> hidden{};  ///< mlp: widths of the hidden layers
  int depth = 20;             ///< resnet: 6n+2
  int width = 16;             ///< cnn and resnet: channels of the first layers
  int layers = 4;             ///< gpt
  int heads = 4;              ///< gpt
  int embedding = 128;        ///< gpt
  int context = 64;           ///< gpt and torchscript on text: characters seen at once
  double compute_ms = 0;      ///< dials: a processor's time for each sample
  double device_ms = 0;       ///< dials: time that passes for each sample, as with a GPU
  double parameters_mb = 1;   ///< dials: what is exchanged
  bool trusted = false;       ///< torchscript of another user may be loaded; who runs the job says so, never the file
  bool is_script() const { return name == "script"; }
  bool operator==(const ModelSpec&) const = default;
};

/// How samples get from storage to the trainer of each worker.
struct LoaderSpec {
  std::optional<int> prep_threads{};        ///< absent: 1 for data in files, none for data in memory
  int ahead = 2;                            ///< batches made ready before they are asked for
  double cache_mb = 0;                      ///< raw samples kept in memory; 0: none
  bool partitioned = false;                 ///< workers ask each other's caches before storage
  std::optional<BytesPerSecond> storage{};  ///< emulated rate of reading; absent: as fast as it is
  std::string share{};                      ///< prepared once for all jobs on the machine with this name
  bool operator==(const LoaderSpec&) const = default;
};

struct DataSpec {
  std::string name{};                ///< digits, idx, cifar, text, images, synthetic, dials or count
  std::vector<std::string> files{};  ///< idx: images, labels; cifar: batches; text, dials: a file; images: a folder
  std::int64_t samples = 0;          ///< of one epoch: digits, synthetic, dials, count; elsewhere what the files hold
  std::vector<int> shape{};          ///< synthetic and images: of one sample; elsewhere known
  int classes = 10;                  ///< synthetic
  std::uint64_t seed = 1;            ///< digits, synthetic: which samples
  double sample_kb = 4;              ///< dials: raw bytes of a sample, / 1000
  double prep_ms = 0;                ///< dials: a processor's time to prepare a sample
  LoaderSpec loader{};
  bool operator==(const DataSpec&) const = default;
};

struct OptimiserSpec {
  enum class Kind { sgd, adam, adamw };
  Kind kind = Kind::sgd;
  double rate = 0.1;
  double momentum = 0;
  double weight_decay = 0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  bool operator==(const OptimiserSpec&) const = default;
};

/// The rate at a step, as a factor of the optimiser's.
struct ScheduleSpec {
  enum class Kind { constant, step, cosine };
  Kind kind = Kind::constant;
  double warmup_steps = 0;  ///< rises in a straight line from 0; the last of them has the full rate
  double every_steps = 0;   ///< step: multiply by `factor` this often
  double factor = 0.1;      ///< step
  double total_steps = 0;   ///< cosine: where it reaches `floor`
  double floor = 0;         ///< cosine: as a share of the full rate
  bool operator==(const ScheduleSpec&) const = default;
};
/// `step` counts from 0.
double rate_factor(const ScheduleSpec& schedule, double step);

struct CheckpointSpec {
  std::string directory{};         ///< or an address in an object store; empty: in the run's folder
  std::optional<Seconds> every{};  ///< absent: from hazard and cost
  int keep = 3;
  bool operator==(const CheckpointSpec&) const = default;
};

/// Parameter servers: absent, workers add up their gradients among themselves.
struct ServersSpec {
  enum class Sync {
    asp,  ///< every push is an update
    bsp,  ///< every step waits for all
    ssp,  ///< as asp, but no worker is more than `bound` updates ahead of the slowest
  };
  int count = 0;    ///< shards, equal in bytes; 0: as planned, or one
  int standby = 0;  ///< further servers that hold the same, for each shard
  Sync sync = Sync::bsp;
  int bound = 0;  ///< ssp
  std::string
      type{};  ///< of the servers' machines; empty: the profile's, the catalogue's, or that of the job's machines
  bool operator==(const ServersSpec&) const = default;
};

struct TrainSpec {
  ModelSpec model{};
  DataSpec data{};                       ///< none where the model is a script
  std::optional<DataSpec> validation{};  ///< evaluated after each epoch
  OptimiserSpec optimiser{};
  ScheduleSpec schedule{};
  CheckpointSpec checkpoint{};
  std::optional<ServersSpec> servers{};
  int batch = 32;                ///< samples of one update: over all workers, or of each where they do not wait
  std::optional<double> clip{};  ///< largest norm of the gradient
  bool sum = false;              ///< losses of a batch are added up, not averaged
  bool scale_rate = false;       ///< rate times workers, as in transient-server training
  std::string device = "cpu";    ///< cpu or cuda
  std::uint64_t seed = 1;        ///< of the first weights and the order of samples
  bool stop_on_nan = true;       ///< a loss that is no number ends the run
  int nan_steps = 3;             ///< after so many steps in a row
  bool stop_on_drift = true;     ///< workers that do not hold the same end the run
  bool operator==(const TrainSpec&) const = default;
};

/// For each other at every step: without servers, or where these are told so.
bool workers_wait(const TrainSpec& spec);
/// Samples of one worker's step where so many work; at least 1.
int batch_of_each(const TrainSpec& spec, int workers);

/// What is wrong is left in the section.
TrainSpec read_train(Section section);

}  // namespace mayfly
