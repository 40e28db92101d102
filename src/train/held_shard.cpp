#include "train/held_shard.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace mayfly {
namespace {

constexpr std::chrono::milliseconds kGoneLook{500};

}  // namespace

HeldShard::Reading::~Reading() {
  const std::lock_guard lock(holder_.mutex_);
  past_.reset();
  std::erase(holder_.live_, this);
}

void HeldShard::await_formation(std::int64_t formation) {
  const std::lock_guard lock(mutex_);
  formation_ = formation;
  changed_.notify_all();
}

std::unique_ptr<Shard> HeldShard::replace(std::unique_ptr<Shard> shard, std::int64_t sample) {
  const std::lock_guard lock(mutex_);
  kept_.reset();
  past_.reset();
  sample_ = sample;
  changed_.notify_all();
  return std::exchange(shard_, std::move(shard));
}

void HeldShard::apply(std::span<const std::span<const float>> pushes, std::int64_t sample, std::int64_t step,
                      int workers) {
  {
    const std::lock_guard lock(mutex_);
    moving_ = true;  // no reader begins; those that have begun go on
  }
  move_readers_away();
  shard_->apply(pushes, step, workers);
  const std::lock_guard lock(mutex_);
  moving_ = false;
  sample_ = sample;
  changed_.notify_all();
}

void HeldShard::move_readers_away() {
  {
    const std::lock_guard lock(mutex_);
    if (live_.empty()) return;
    if (!past_ || past_.use_count() > 1) past_ = std::make_shared<Floats>();
  }
  const auto weights = shard_->weights();
  past_->assign(weights.begin(), weights.end());
  const std::lock_guard lock(mutex_);
  for (auto* reading : std::exchange(live_, {})) {
    const std::lock_guard reader(reading->mutex_);
    reading->past_ = past_;
  }
}

std::shared_ptr<ShardCopy> HeldShard::fresh_copy() {
  auto copy = kept_.use_count() == 1 ? std::exchange(kept_, {}) : std::make_shared<ShardCopy>();
  const auto state = shard_->state();
  copy->sample = sample_;
  copy->bytes.assign(state.begin(), state.end());
  return copy;
}

void HeldShard::keep_copy() {
  const std::lock_guard lock(mutex_);
  if (!shard_) return;
  kept_ = fresh_copy();
  changed_.notify_all();
}

std::int64_t HeldShard::sample() const {
  const std::lock_guard lock(mutex_);
  return sample_;
}

template <class Ready>
Result<void> HeldShard::await(Lock& lock, std::int64_t formation, const Gone& gone, Ready ready) {
  while (formation_ < formation || !shard_ || moving_ || !ready()) {
    if (formation_ > formation) break;
    changed_.wait_for(lock, kGoneLook);
    if (gone && gone()) return fail("it was not waited for");
  }
  if (formation_ != formation) return fail("formation {} is over: {} has begun", formation, formation_);
  return {};
}

Result<ShardRange> HeldShard::range(std::int64_t formation, const Gone& gone) {
  Lock lock(mutex_);
  if (const auto there = await(lock, formation, gone, [] { return true; }); !there) return unexpected(there.error());
  return shard_->range();
}

Result<std::unique_ptr<HeldShard::Reading>> HeldShard::read(std::int64_t formation, std::int64_t sample,
                                                            const Gone& gone) {
  Lock lock(mutex_);
  if (const auto there = await(lock, formation, gone, [&] { return sample_ >= sample; }); !there)
    return unexpected(there.error());
  auto reading = std::make_unique<Reading>(*this, sample_);
  live_.push_back(reading.get());
  return reading;
}

Result<std::shared_ptr<const ShardCopy>> HeldShard::copy(std::int64_t formation, std::int64_t sample,
                                                         const Gone& gone) {
  Lock lock(mutex_);
  if (const auto there = await(lock, formation, gone, [&] { return sample_ >= sample; }); !there)
    return unexpected(there.error());
  if (kept_ && kept_->sample == sample) {
    // Given back under the lock: only then can its memory be used for the next one.
    return std::shared_ptr<const ShardCopy>(kept_.get(), [this, kept = kept_](const ShardCopy*) mutable {
      const std::lock_guard back(mutex_);
      kept.reset();
    });
  }
  if (sample_ != sample) return fail("the state of sample {} is past: it is at {}", sample, sample_);
  // An update waits for it: this is for recovery, which is rare.
  const auto state = shard_->state();
  return std::make_shared<const ShardCopy>(
      ShardCopy{.sample = sample_, .bytes = std::vector<std::byte>(state.begin(), state.end())});
}

}  // namespace mayfly
