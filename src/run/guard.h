#pragma once

#include <optional>
#include <string>
#include <vector>

#include "control/loss_watch.h"
#include "control/speed_watch.h"
#include "run/crew.h"
#include "run/run.h"
#include "run/whole_samples.h"

namespace mayfly {

/// Holds what is measured against what was promised: the loss, the speed, the time left. Reads no clock and sends
/// nothing; what it finds is for the runner to tell.
class Guard {
 public:
  /// What a step has taught.
  struct Findings {
    std::optional<double> estimated{};  ///< samples now believed to be needed
    std::optional<double> ratio{};      ///< measured speed over the predicted
    std::vector<std::string> sayings{};
  };
  struct Standing {
    Seconds now{};
    Usd spent{};
    std::int64_t samples = 0;              ///< committed
    std::optional<std::int64_t> target{};  ///< in force
  };

  /// `inputs` must outlive the guard; `epoch`: samples of one.
  Guard(const RunInputs& inputs, std::int64_t epoch);

  /// So many workers train from now on.
  void begin(int workers);
  Findings saw(const Crew::Step& step, Seconds commit, const Standing& standing);
  void roll_back(std::int64_t sample) { losses_.roll_back(progress_of(sample)); }

  /// As the promise means it.
  std::optional<double> training_loss() const { return losses_.training_loss(); }
  /// Training loss, or validation loss where the job names a set.
  bool loss_reached() const;

 private:
  void watch_loss(const Crew::Step& step, const Standing& standing, Findings& findings);
  void watch_speed(const Crew::Step& step, Seconds commit, const Standing& standing, Findings& findings);
  void repeat_promise(const Standing& standing, Findings& findings);

  const RunInputs& inputs_;
  LossWatch losses_;
  SpeedWatch speed_;
  std::optional<double> validation_{};
  std::optional<double> told_ratio_{};
  Seconds told_at_{};
  int workers_ = 1;
  Seconds estimated_at_{};
  bool named_ = false;     ///< the bottleneck of this formation
  bool repeated_ = false;  ///< the promise
};

}  // namespace mayfly
