#pragma once

#include <filesystem>
#include <functional>
#include <thread>

#include "base/units.h"
#include "data/checkpoint.h"
#include "nn/trainer.h"
#include "wire/message.h"

namespace mayfly {

/// Writes one checkpoint at a time, beside the training.
class CheckpointWriter {
 public:
  /// `told` gets CheckpointWritten or CheckpointFailed, from the writer's thread.
  explicit CheckpointWriter(std::function<void(Message)> told) : told_(std::move(told)) {}
  /// Waits for the one in hand.
  ~CheckpointWriter() { finish(); }

  /// Waits for the one in hand, copies the trainer's state, then returns.
  void write(const std::filesystem::path& directory, const TrainerState& state, Trainer& trainer);
  void finish();

 private:
  std::function<void(Message)> told_;
  std::thread thread_{};
};

}  // namespace mayfly
