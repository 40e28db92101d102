#pragma once

#include <atomic>
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

  /// Copies the trainer's state, then returns; refused with CheckpointFailed while one is being written.
  void write(const std::filesystem::path& directory, const TrainerState& state, Trainer& trainer);
  void finish();

 private:
  std::function<void(Message)> told_;
  std::atomic<bool> busy_ = false;
  std::thread thread_{};
};

}  // namespace mayfly
