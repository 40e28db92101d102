#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/checkpoint.h"
#include "data/dataset.h"
#include "data/feed.h"
#include "data/order.h"
#include "job/job_spec.h"
#include "nn/trainer.h"
#include "vault/depot.h"
#include "wire/message.h"

namespace mayfly {

/// A job in memory: what every process that trains or serves needs of it.
struct LoadedJob {
  JobSpec job{};  ///< with a `train` block
  std::unique_ptr<Dataset> data{}, validation{};
  std::optional<SampleOrder> order{};
  Feed feed{};                               ///< of the training data; goes before it
  std::optional<Feed> set_aside{};           ///< the job's own feed while another one, that is warm, is used
  std::shared_ptr<const Batch> synthetic{};  ///< trained on over and over; none: what the feed gives
  std::unique_ptr<Trainer> trainer{};        ///< none: nothing was loaded yet
  Lineage lineage{};                         ///< of what it trains
  Ready ready{};                             ///< what the controller is told of it
  const TrainSpec& spec() const { return *job.train; }
};
/// How a job whose workers' caches are to be one gets at the others', which must outlive it.
using OpenPeers = std::function<Result<PeerCaches*>()>;
struct LoadOptions {
  OpenPeers peers{};   ///< none: the cache is its own
  bool trust = false;  ///< TorchScript of other users
};
Result<LoadedJob> loaded_job(const Welcome& welcome, const LoadOptions& options);

/// The samples at these places of the order, or the synthetic ones, of which there are as many. What this thread does
/// for them is stretched to a share of a core.
Result<std::shared_ptr<const Batch>> waited_batch(LoadedJob& job, SampleRange places, std::optional<double> cpu_share,
                                                  std::optional<double>& wait_s);
/// From now on samples come from memory, where the first `count` of them lie already; prepared as the job wants it.
Result<void> warm_up(LoadedJob& job, std::int64_t count);
/// From now on they come from where the job says.
void cool_down(LoadedJob& job);
/// Whatever is cached of the training data, here and by the kernel, is dropped as far as it can be.
void forget_data(LoadedJob& job, const std::filesystem::path& folder);

/// Gives the trainer the state of a checkpoint, which must be of this run and data and hold this many samples; empty:
/// first weights, of sample 0. Where it fails the weights may be garbage. `depot`: where it lies.
Result<TrainerState> restore(LoadedJob& job, Depot& depot, const std::string& checkpoint, std::int64_t sample);

}  // namespace mayfly
