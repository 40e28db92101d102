#pragma once

#include <algorithm>
#include <cmath>

#include "predict/speed.h"

namespace mayfly {

/// Adds up workers that each repeat a cycle of their own length (asynchronous training): spotDNN (2), (4), (5).
class CycleSum {
 public:
  /// `count` workers with a cycle of `cycle` seconds that yields `batch` samples.
  void add(int count, double cycle, double batch, double relative_sd = 0) {
    const double speed = batch / cycle;
    sd_of_updates_ += count / cycle * relative_sd;
    sd_of_samples_ += count * speed * relative_sd;
    updates_ += count / cycle;
    samples_ += count * speed;
    squares_ += count * speed * speed;
    fastest_ = std::max(fastest_, speed);
  }
  /// Books `seconds` of each of these workers' cycles under `part`, weighted by how often they update.
  void book(Part part, int count, double cycle, double seconds) {
    speed_.breakdown[static_cast<std::size_t>(part)] += count / cycle * seconds;
  }

  Speed total() const {
    Speed speed = speed_;
    speed.updates_per_s = updates_;
    speed.samples_per_s = samples_;
    speed.batch = samples_ / updates_;
    speed.sd_by_updates = sd_of_updates_ / updates_;
    speed.sd_by_samples = sd_of_samples_ / samples_;
    // R^2 = (w1 - 1)^2 + sum of the other shares squared, with w1 the largest share.
    const double first = fastest_ / samples_;
    speed.cc = std::sqrt(std::max(0.0, 1 - 2 * first + squares_ / (samples_ * samples_)));
    for (double& part : speed.breakdown) part /= updates_;
    return speed;
  }

 private:
  double updates_ = 0;
  double samples_ = 0;
  double squares_ = 0;
  double fastest_ = 0;
  double sd_of_updates_ = 0;
  double sd_of_samples_ = 0;
  Speed speed_{};
};

inline int worker_count(std::span<const Group> groups) {
  int count = 0;
  for (const Group& group : groups) count += group.count;
  return count;
}

}  // namespace mayfly
