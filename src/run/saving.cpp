#include "run/saving.h"

#include <algorithm>

#include "predict/checkpoint_interval.h"

namespace mayfly {
namespace {

/// Below that it is the clock that is measured.
constexpr Seconds kLeastCost{0.01};
/// Between two tries to save the last state of all.
constexpr Seconds kSaveAgain{0.5};
/// Taken for granted before losses were seen: one an hour.
constexpr Seconds kAssumedBetweenLosses{3600};
/// Written at a rate that any disk has, before one was measured.
constexpr BytesPerSecond kAssumedWriting{5e7};
constexpr Seconds kLeastTime{0.1};

}  // namespace

bool Saving::due(Seconds now, std::int64_t sample, bool last, int losses) const {
  if (asked_ || holds(sample)) return false;
  // Nothing else is left to do; the last attempt failed or was of an earlier state.
  if (last) return now - time_ >= kSaveAgain;
  const Seconds between = (now + kAssumedBetweenLosses) / (losses + 1);
  return now - time_ >= every_.value_or(checkpoint_interval(cost_, between));
}

Seconds Saving::time() const {
  return std::max(kLeastTime, write_time_.value_or(megabytes(state_mb_) / kAssumedWriting));
}

void Saving::written(Seconds now, const CheckpointWritten& checkpoint) {
  time_ = now;
  // What training loses by it; writing goes on beside.
  cost_ = std::max(kLeastCost, Seconds(checkpoint.stall_s));
  write_time_ = Seconds(checkpoint.write_s);
  asked_ = false;
  sample_ = std::max(sample_, checkpoint.sample);
}

void Saving::failed(Seconds now) {
  time_ = now;
  asked_ = false;
}

}  // namespace mayfly
