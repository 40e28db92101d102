#pragma once

#include <deque>
#include <optional>

#include "base/units.h"
#include "job/log_line.h"

namespace mayfly {

/// How far a training is that we only hear talk: from its output, by the same reader as `profile --from`.
class TalkedProgress {
 public:
  /// `steps`: where it ends, if the user has said so; else what the output says ("step 100/1000").
  explicit TalkedProgress(std::optional<double> steps) : total_(steps), given_(steps.has_value()) {}

  void saw(Seconds now, const LogPoint& point);
  /// The processes were started again, perhaps from a checkpoint: the speed is learnt anew.
  void restarted() { points_.clear(); }

  std::optional<double> step() const { return step_; }
  std::optional<double> loss() const { return loss_; }
  std::optional<double> total() const { return total_; }
  std::optional<double> steps_per_s() const;
  /// When it will be done at this speed; nothing before enough was heard.
  std::optional<Seconds> end() const;

 private:
  struct Point {
    Seconds time{};
    double step = 0;
  };
  std::optional<double> total_;
  bool given_;
  std::optional<double> step_{};
  std::optional<double> loss_{};
  std::deque<Point> points_{};
};

}  // namespace mayfly
