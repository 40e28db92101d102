#pragma once

#include <cstdint>
#include <optional>

#include "base/units.h"
#include "wire/message.h"

namespace mayfly {

/// For a last checkpoint.
constexpr Seconds kSavePatience{60};

/// When a run should write a checkpoint, what the newest holds, and how long one takes. Reads no clock.
class Saving {
 public:
  /// `every`: as the job says; otherwise as often as losses and the cost of saving ask for.
  explicit Saving(std::optional<Seconds> every) : every_(every) {}

  /// A state that the newest checkpoint does not hold, and none is being written.
  bool due(Seconds now, std::int64_t sample, bool last, int losses) const;
  bool holds(std::int64_t sample) const { return sample <= sample_; }
  bool asked() const { return asked_; }
  /// How long writing one takes, as far as is known.
  Seconds time() const;

  void ask() { asked_ = true; }
  /// Not waited for any more.
  void give_up() { asked_ = false; }
  void written(Seconds now, const CheckpointWritten& checkpoint);
  void failed(Seconds now);
  /// The run went on from here, at this time.
  void start_from(std::int64_t sample) { sample_ = sample; }
  void start_at(Seconds now) { time_ = now; }
  /// Weights and moments, as a worker or server says.
  void learn_size(double megabytes) { state_mb_ = std::max(state_mb_, megabytes); }

 private:
  std::optional<Seconds> every_;
  bool asked_ = false;
  Seconds time_{};                       ///< when the last was written or given up
  Seconds cost_{0.01};                   ///< what training loses by one; of the first, until it is known
  std::optional<Seconds> write_time_{};  ///< of the last
  double state_mb_ = 0;
  std::int64_t sample_ = 0;  ///< that the newest holds
};

}  // namespace mayfly
