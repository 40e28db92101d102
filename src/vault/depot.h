#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "data/checkpoint.h"
#include "vault/store_answer.h"
#include "vault/surroundings.h"

namespace mayfly {

struct ReadCheckpoint {
  TrainerState state{};
  CheckpointTensors tensors{};
};

/// Where a run's checkpoints are: a folder, or a place in an object store. A checkpoint that is found is whole; one
/// that is being written does not exist. Calls may take long, and may come from several threads.
class Depot {
 public:
  virtual ~Depot() = default;

  /// Marks it as this run's, which shows that it can be read and written, or says whose it is: two runs must not share
  /// one. `patience`: with a store that is away.
  virtual StoreResult<void> claim(const std::string& run, Seconds patience) = 0;
  /// The one of this lineage with the most samples. An error: it cannot be told now.
  virtual Result<FoundCheckpoint> newest(const Lineage& lineage) = 0;
  /// Its path or address.
  virtual Result<std::string> write(const TrainerState& state, std::span<const TensorView> model,
                                    std::span<const TensorView> optimiser) = 0;
  virtual Result<ReadCheckpoint> read(const std::string& checkpoint) = 0;
  /// Names it the latest, and removes older ones but for the `keep` - 1 newest and what broken writes left behind.
  virtual Result<void> publish(const std::string& checkpoint, int keep) = 0;
  /// Removes what broken writes left behind: nobody is writing any more.
  virtual void tidy() = 0;
};

/// The one that is meant: a folder's path, or `s3://BUCKET/PREFIX`. `said`: something is tried again, and why; callable
/// from any thread. Asks nobody yet.
Result<std::unique_ptr<Depot>> open_depot(const std::string& place, const Surroundings& around,
                                          std::function<void(const std::string&)> said);

}  // namespace mayfly
