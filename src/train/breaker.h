#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>

#include "train/abortable.h"

namespace mayfly {

/// Where the training thread leaves what it waits in, so that the line's thread can end the waiting. A formation that
/// ended before it was there is not forgotten.
class Breaker {
 public:
  void install(std::shared_ptr<Abortable> waiting, std::int64_t formation) {
    const std::lock_guard lock(mutex_);
    waiting_ = std::move(waiting);
    formation_ = formation;
    if (waiting_ && formation_ <= ended_) waiting_->abort();
  }
  /// All formations up to this one.
  void end(std::int64_t formation) {
    const std::lock_guard lock(mutex_);
    ended_ = std::max(ended_, formation);
    if (waiting_ && formation_ <= ended_) waiting_->abort();
  }
  /// A worker that starts again hears of formations that may have smaller numbers.
  void forget() {
    const std::lock_guard lock(mutex_);
    ended_ = -1;
    waiting_.reset();
  }

 private:
  std::mutex mutex_{};
  std::shared_ptr<Abortable> waiting_{};
  std::int64_t formation_ = -1;
  std::int64_t ended_ = -1;
};

}  // namespace mayfly
