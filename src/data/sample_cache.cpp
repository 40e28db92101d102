#include "data/sample_cache.h"

#include <mutex>

namespace mayfly {

bool SampleCache::find(std::int64_t sample, std::vector<std::byte>& out) const {
  Copy found;
  {
    const std::shared_lock lock(mutex_);
    const auto entry = entries_.find(sample);
    if (entry == entries_.end()) return false;
    found = entry->second;
  }
  out.assign(found->begin(), found->end());
  return true;
}

bool SampleCache::holds(std::int64_t sample) const {
  const std::shared_lock lock(mutex_);
  return entries_.contains(sample);
}

bool SampleCache::offer(std::int64_t sample, std::span<const std::byte> bytes) {
  const auto fits = [&] { return bytes.size() <= capacity_ && bytes_ <= capacity_ - bytes.size(); };
  {
    const std::shared_lock lock(mutex_);
    if (!fits() || entries_.contains(sample)) return false;
  }
  auto copy = std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end());
  const std::lock_guard lock(mutex_);
  if (!fits() || !entries_.try_emplace(sample, std::move(copy)).second) return false;
  held_.push_back(sample);
  bytes_ += bytes.size();
  return true;
}

void SampleCache::resize(std::size_t capacity) {
  const std::lock_guard lock(mutex_);
  capacity_ = capacity;
  while (bytes_ > capacity_) {
    const auto place = rng_.bits() % held_.size();
    const auto gone = entries_.find(held_[place]);
    bytes_ -= gone->second->size();
    entries_.erase(gone);
    held_[place] = held_.back();
    held_.pop_back();
  }
}

void SampleCache::drop(const std::function<bool(std::int64_t)>& whom) {
  const std::lock_guard lock(mutex_);
  std::erase_if(held_, whom);
  std::erase_if(entries_, [&](const auto& entry) {
    const bool goes = whom(entry.first);
    if (goes) bytes_ -= entry.second->size();
    return goes;
  });
}

std::size_t SampleCache::capacity() const {
  const std::shared_lock lock(mutex_);
  return capacity_;
}

std::size_t SampleCache::bytes() const {
  const std::shared_lock lock(mutex_);
  return bytes_;
}

std::size_t SampleCache::size() const {
  const std::shared_lock lock(mutex_);
  return held_.size();
}

std::vector<std::int64_t> SampleCache::samples() const {
  const std::shared_lock lock(mutex_);
  return held_;
}

}  // namespace mayfly
