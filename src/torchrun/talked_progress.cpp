#include "torchrun/talked_progress.h"

namespace mayfly {
namespace {

/// So many are remembered; the speed is the mean over them.
constexpr std::size_t kPoints = 256;
/// Before so many the first ones, which are slower, would decide.
constexpr std::size_t kLeastPoints = 5;

}  // namespace

void TalkedProgress::saw(Seconds now, const LogPoint& point) {
  if (point.loss) loss_ = point.loss;
  std::optional<double> step = point.step;
  if (!step && point.done && !point.epoch && !point.done_samples) step = point.done;
  if (!step) return;
  if (!given_ && point.of && !point.epoch) total_ = point.of;
  // Several processes may tell the same step, one a little later than the other.
  if (!points_.empty() && *step <= points_.back().step) return;
  step_ = step;
  points_.push_back({now, *step});
  if (points_.size() > kPoints) points_.pop_front();
}

std::optional<double> TalkedProgress::steps_per_s() const {
  if (points_.size() < kLeastPoints) return std::nullopt;
  const Point& first = points_[points_.size() < kPoints ? 1 : 0];
  const double time = (points_.back().time - first.time).count();
  return time > 0 ? std::optional((points_.back().step - first.step) / time) : std::nullopt;
}

std::optional<Seconds> TalkedProgress::end() const {
  const auto rate = steps_per_s();
  if (!rate || !total_) return std::nullopt;
  return points_.back().time + Seconds(std::max(0.0, *total_ - points_.back().step) / *rate);
}

}  // namespace mayfly
