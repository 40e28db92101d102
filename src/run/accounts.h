#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "base/units.h"
#include "control/event.h"
#include "wire/message.h"

namespace mayfly {

/// What has happened so far, in figures.
class Accounts {
 public:
  void preempted(Seconds now, bool trained);
  /// `staleness`: updates between what the step was computed with and what it was applied to.
  void committed(Seconds now, std::int64_t samples, double loss, double staleness);
  /// What an earlier process has counted.
  void restore(int preemptions, std::int64_t redone) {
    preemptions_ = preemptions;
    redone_ = redone;
  }
  void validated(double loss, std::optional<double> accuracy) {
    validation_loss_ = loss;
    accuracy_ = accuracy;
  }
  /// What a worker's loader has done so far.
  void fed(WorkerId worker, const Fed& fed) { fed_[worker] = fed; }
  /// The training fell back to this sample.
  void rolled_back(std::int64_t from, std::int64_t to);

  int preemptions() const { return preemptions_; }
  std::int64_t redone() const { return redone_; }
  /// Over the last seconds.
  double samples_per_s(Seconds now) const;
  /// Of the last step.
  std::optional<double> loss() const { return loss_; }
  std::optional<double> validation_loss() const { return validation_loss_; }
  std::optional<double> accuracy() const { return accuracy_; }
  /// All loaders together, of workers that are gone, too.
  std::optional<Fed> loader() const;
  double mean_staleness() const { return steps_ > 0 ? staleness_ / static_cast<double>(steps_) : 0; }
  double worst_staleness() const { return worst_staleness_; }
  std::optional<Seconds> recovery_p50() const;
  std::optional<Seconds> recovery_max() const;

 private:
  struct Point {
    Seconds time{};
    std::int64_t samples = 0;
  };
  int preemptions_ = 0;
  std::int64_t redone_ = 0;
  std::vector<Seconds> open_{};  ///< losses after which nothing was committed yet
  std::vector<Seconds> recoveries_{};
  std::deque<Point> recent_{};
  std::optional<double> loss_{};
  std::optional<double> validation_loss_{};
  std::optional<double> accuracy_{};
  std::map<WorkerId, Fed> fed_{};
  std::int64_t steps_ = 0;
  double staleness_ = 0;  ///< sum over steps
  double worst_staleness_ = 0;
};

}  // namespace mayfly
