#pragma once

#include <cstdint>
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
#include "wire/message.h"

namespace mayfly {

/// A job in memory: what every process that trains or serves needs of it.
struct LoadedJob {
  JobSpec job{};  ///< with a `train` block
  std::unique_ptr<Dataset> data{}, validation{};
  std::optional<SampleOrder> order{};
  Feed feed{};                         ///< of the training data; goes before it
  std::unique_ptr<Trainer> trainer{};  ///< none: nothing was loaded yet
  Ready ready{};                       ///< what the controller is told of it
  const TrainSpec& spec() const { return *job.train; }
};
Result<LoadedJob> loaded_job(const Welcome& welcome);

/// Gives the trainer the state of a checkpoint, which must hold this many samples; empty: first weights, of sample 0.
/// Where it fails the weights may be garbage.
Result<TrainerState> restore(Trainer& trainer, const std::string& checkpoint, std::int64_t sample);

}  // namespace mayfly
