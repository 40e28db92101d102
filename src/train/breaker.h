#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>

#include "train/mesh.h"

namespace mayfly {

/// Where the training thread leaves its mesh, so that the line's thread can end the waiting in it. A formation that
/// ended before its mesh was there is not forgotten.
class Breaker {
 public:
  void install(std::shared_ptr<Mesh> mesh, std::int64_t formation) {
    const std::lock_guard lock(mutex_);
    mesh_ = std::move(mesh);
    formation_ = formation;
    if (mesh_ && formation_ <= ended_) mesh_->abort();
  }
  /// All formations up to this one.
  void end(std::int64_t formation) {
    const std::lock_guard lock(mutex_);
    ended_ = std::max(ended_, formation);
    if (mesh_ && formation_ <= ended_) mesh_->abort();
  }
  /// A worker that starts again hears of formations that may have smaller numbers.
  void forget() {
    const std::lock_guard lock(mutex_);
    ended_ = -1;
    mesh_.reset();
  }

 private:
  std::mutex mutex_{};
  std::shared_ptr<Mesh> mesh_{};
  std::int64_t formation_ = -1;
  std::int64_t ended_ = -1;
};

}  // namespace mayfly
