#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "data/dataset.h"
#include "data/order.h"
#include "job/job_spec.h"
#include "nn/trainer.h"
#include "train/breaker.h"
#include "train/checkpoint_writer.h"
#include "train/line.h"
#include "train/mesh.h"

namespace mayfly {

/// A worker's side of docs/protocol.md: does what the controller says, in one thread. An update is applied only on the
/// controller's word that its samples are committed.
class Worker {
 public:
  struct Options {
    Line::Options line{};
    std::string interface = "lo";
  };
  /// Exit codes of the process.
  static constexpr int kDone = 0, kRejected = 1, kUnable = 2, kOrphaned = 3;

  explicit Worker(Options options);
  /// Until told to leave. Returns the exit code.
  int run();

 private:
  /// A step whose gradients are summed and whose word is awaited.
  struct Pending {
    std::int64_t first = 0;
    std::int64_t samples = 0;
    std::int64_t step = 0;
    int workers = 1;
    StepDone done{};
    std::int64_t end() const { return first + samples; }
  };

  // Each returns an error where the worker cannot go on at all.
  Result<void> obey(Message message);
  Result<void> load(const Welcome& welcome);
  Result<void> form(const Form& form);
  Result<void> make_state(const Form& form);
  void meet(const Peers& peers);
  Result<void> receive_state();
  void proceed(const Proceed& proceed);
  void write_checkpoint();

  /// Applies the pending step if it ends here, and forgets it.
  void settle_pending(std::int64_t committed);
  Result<void> train(const Proceed& proceed, StepDone done);
  Result<void> evaluate(StepDone& done);
  void break_formation(const std::string& what);
  void drop();
  int orphaned();
  void hold(std::int64_t sample, std::int64_t step);
  TrainerState state() const;

  Options options_;
  std::unique_ptr<NetworkDevice> network_{};
  Breaker breaker_{};
  Line line_;
  CheckpointWriter writer_;

  Welcome terms_{};
  JobSpec job_{};
  std::unique_ptr<Dataset> data_{}, validation_{};
  std::optional<SampleOrder> order_{};
  std::unique_ptr<Trainer> trainer_{};
  Ready ready_{};

  std::int64_t sample_ = 0;  ///< the weights hold these; -1: they are garbage
  std::int64_t step_ = 0;
  double loss_ = 0;
  std::optional<Pending> pending_{};
  std::optional<Form> form_{};
  std::shared_ptr<Mesh> mesh_{};  ///< none while no formation stands or is being made
  bool stands_ = false;
};

}  // namespace mayfly
