#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/result.h"
#include "nn/shard.h"

namespace mayfly {

/// A shard's whole state, as it was.
struct ShardCopy {
  std::int64_t sample = 0;
  std::vector<std::byte> bytes{};
};

/// The shard that a server holds: read by many threads, moved by one, the owner's.
///
/// A reader sees one state from the first byte to the last, though a slow network may take seconds for it, and an
/// update waits for no reader's network. So a reader goes by the live weights, without a copy, as long as no
/// update comes; the update first makes one copy for all who are in the middle. Between synchronous steps no reader is,
/// and nothing is copied.
class HeldShard {
 public:
  class Reading;
  /// Asked now and then while waiting: whether the reader does not want the answer any more.
  using Gone = std::function<bool()>;

  // The owner's thread.

  /// From now on only this formation is waited for; a reader that waits for an earlier one gets an error.
  void await_formation(std::int64_t formation);
  /// Takes the shard of the formation awaited, or nothing, and returns the one before, which must have no reader.
  std::unique_ptr<Shard> replace(std::unique_ptr<Shard> shard, std::int64_t sample);
  void apply(std::span<const std::span<const float>> pushes, std::int64_t sample, std::int64_t step, int workers);
  void keep_copy();

  // Any thread.

  std::int64_t sample() const;
  /// Waits until the formation has its shard.
  Result<ShardRange> range(std::int64_t formation, const Gone& gone);
  /// Waits until the state is `sample` or later. The holder must outlive it.
  Result<std::unique_ptr<Reading>> read(std::int64_t formation, std::int64_t sample, const Gone& gone);
  /// Exactly this state: a copy that was kept, or one of the present. Waits for it; what is past is an error.
  Result<std::shared_ptr<const ShardCopy>> copy(std::int64_t formation, std::int64_t sample, const Gone& gone);

 private:
  using Floats = std::vector<float>;
  using Lock = std::unique_lock<std::mutex>;

  template <class Ready>
  Result<void> await(Lock& lock, std::int64_t formation, const Gone& gone, Ready ready);
  void move_readers_away();
  std::shared_ptr<ShardCopy> fresh_copy();

  mutable std::mutex mutex_{};
  std::condition_variable changed_{};
  std::int64_t formation_ = -1;
  std::unique_ptr<Shard> shard_{};
  std::int64_t sample_ = 0;
  bool moving_ = false;             ///< an update is being applied
  std::vector<Reading*> live_{};    ///< readers of the shard's own weights
  std::shared_ptr<Floats> past_{};  ///< for those who were in the middle; used again when they are done
  std::shared_ptr<ShardCopy> kept_{};
};

/// A reader in the middle of one state.
class HeldShard::Reading {
 public:
  Reading(HeldShard& holder, std::int64_t sample) : holder_(holder), sample_(sample) {}
  ~Reading();
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

  std::int64_t sample() const { return sample_; }
  /// Calls with all weights of the state; they stay where they are meanwhile, and an update waits: be brief.
  template <class Use>
  auto with(Use use) {
    const std::lock_guard lock(mutex_);
    return use(past_ ? std::span<const float>(*past_) : holder_.shard_->weights());
  }

 private:
  friend class HeldShard;
  HeldShard& holder_;
  const std::int64_t sample_;
  std::mutex mutex_{};
  std::shared_ptr<const Floats> past_{};
};

}  // namespace mayfly
