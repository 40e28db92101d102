#include "train/staging.h"

#include <utility>

namespace mayfly {

void Staging::begin(std::int64_t formation, std::size_t size) {
  const std::lock_guard lock(mutex_);
  if (size != size_) free_.clear();
  formation_ = formation;
  size_ = size;
  unwanted_.clear();
  for (auto& [lease, push] : std::exchange(staged_, {})) give_back_locked(std::move(push));
}

PushBuffer Staging::buffer() {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) return {.values = std::make_unique_for_overwrite<float[]>(size_), .size = size_};
  auto last = std::move(free_.back());
  free_.pop_back();
  return last;
}

void Staging::give_back(PushBuffer buffer) {
  const std::lock_guard lock(mutex_);
  give_back_locked(std::move(buffer));
}

void Staging::give_back_locked(PushBuffer buffer) {
  if (buffer.values && buffer.size == size_) free_.push_back(std::move(buffer));
}

bool Staging::keep(std::int64_t formation, std::int64_t lease, PushBuffer push) {
  const std::lock_guard lock(mutex_);
  if (formation != formation_ || push.size != size_) return false;
  if (unwanted_.erase(lease) > 0) {
    give_back_locked(std::move(push));
    return true;
  }
  auto& place = staged_[lease];
  give_back_locked(std::exchange(place, std::move(push)));
  return true;
}

Result<std::vector<PushBuffer>> Staging::take(std::span<const std::int64_t> leases) {
  const std::lock_guard lock(mutex_);
  for (const auto lease : leases) {
    if (!staged_.contains(lease)) return fail("lease {} is not staged", lease);
  }
  std::vector<PushBuffer> pushes;
  for (const auto lease : leases) {
    const auto found = staged_.find(lease);
    if (found == staged_.end()) return fail("lease {} is named twice", lease);
    pushes.push_back(std::move(found->second));
    staged_.erase(found);
  }
  return pushes;
}

void Staging::forget(std::span<const std::int64_t> leases) {
  const std::lock_guard lock(mutex_);
  for (const auto lease : leases) {
    if (const auto found = staged_.find(lease); found != staged_.end()) {
      give_back_locked(std::move(found->second));
      staged_.erase(found);
    } else {
      unwanted_.insert(lease);
    }
  }
}

}  // namespace mayfly
