#pragma once

#include <functional>
#include <thread>

#include "base/units.h"
#include "data/checkpoint.h"
#include "nn/trainer.h"
#include "vault/depot.h"
#include "wire/message.h"

namespace mayfly {

/// Writes one checkpoint at a time, beside the training.
class CheckpointWriter {
 public:
  /// `told` gets CheckpointWritten or CheckpointFailed, from the writer's thread.
  explicit CheckpointWriter(std::function<void(FromMember)> told) : told_(std::move(told)) {}
  /// Waits for the one in hand.
  ~CheckpointWriter() { finish(); }

  /// Waits for the one in hand, copies the trainer's state, then returns. `depot` must last until it is written.
  void write(Depot& depot, const TrainerState& state, Trainer& trainer);
  /// Waits for the one in hand; `work` is done in the writer's thread, and what it returns is told.
  void write(std::function<FromMember()> work);
  void finish();

 private:
  std::function<void(FromMember)> told_;
  std::thread thread_{};
};

/// CheckpointWritten, of what the trainer holds, or CheckpointFailed.
FromMember checkpoint_written(Depot& depot, const TrainerState& state, Trainer& trainer, Seconds stall);

}  // namespace mayfly
