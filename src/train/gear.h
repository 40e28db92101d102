#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "train/breaker.h"
#include "train/checkpoint_writer.h"
#include "train/data_link.h"
#include "train/line.h"
#include "train/loaded_job.h"
#include "train/mesh.h"
#include "train/own_files.h"
#include "vault/depot.h"

namespace mayfly {

/// What a worker trains with, however it stands with the others: its line to the controller, its job, and what its
/// weights hold. Of the worker's one thread; line and breaker know of others.
class Gear {
 public:
  struct Options {
    Line::Options line{};
    std::string interface = "lo";
    bool trust = false;  ///< TorchScript of other users
    Surroundings around{};
    std::optional<OwnFiles> own{};  ///< none: it sees the controller's files under the same paths
    // Of an emulated machine.
    std::optional<BytesPerSecond> network{};  ///< each way
    std::optional<double> cpu_share{};        ///< of a core
  };
  explicit Gear(Options its_options);

  /// The weights hold this many samples and steps now; -1 samples: they are garbage, or not the worker's to hold.
  void hold(std::int64_t samples, std::int64_t steps);
  std::int64_t sample() const { return sample_; }
  std::int64_t step() const { return step_; }
  /// What a controller says: from here on its checkpoints are at hand.
  Result<void> accept(const Welcome& welcome);
  /// What is held, into a checkpoint; the controller is told when it is written.
  void write_checkpoint();

  /// Tells that a formation broke, and which of `names` do not answer at their places; waits for an answer no longer
  /// than the formation lasts.
  void tell_broken(std::int64_t formation, const std::string& what, std::span<const std::string> names,
                   std::span<const std::string> places);
  /// The same, where it is known which.
  void tell_broken(std::int64_t formation, const std::string& what, std::span<const std::string> names,
                   const std::vector<std::size_t>& missing);

  /// A formation is over, and with it the way of doing steps that a Measure asked for.
  void work_as_usual();
  /// Tells where samples came from, if there is something to tell; not too often, but for the last time.
  void report_feed(bool last);

  const Options options;
  const std::shared_ptr<EmulatedNetwork> emulated;
  std::unique_ptr<NetworkDevice> network{};
  Breaker breaker{};  ///< ends the wait in hand when its formation is over
  Line line;
  std::unique_ptr<Depot> depot{};  ///< as the terms name it; the writer uses it to its end
  CheckpointWriter writer;
  Welcome terms{};
  LoadedJob job{};
  double loss = 0;  ///< of the last step that the weights hold

 private:
  std::int64_t sample_ = 0;
  std::int64_t step_ = 0;
  std::chrono::steady_clock::time_point reported_{};
};

}  // namespace mayfly
