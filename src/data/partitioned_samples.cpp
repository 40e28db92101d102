#include "data/partitioned_samples.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/rng.h"

namespace mayfly {

int owner_of(std::int64_t sample, std::span<const int> workers) {
  int owner = -1;
  std::uint64_t best = 0;
  for (const int worker : workers) {
    const auto score = Rng(Rng(static_cast<std::uint64_t>(sample)).bits() + static_cast<std::uint64_t>(worker)).bits();
    if (owner >= 0 && score <= best) continue;
    owner = worker;
    best = score;
  }
  return owner;
}

void PartitionedSamples::set_members(int self, std::vector<int> workers) {
  const std::lock_guard lock(mutex_);
  if (self == self_ && workers == members_) return;
  self_ = self;
  members_ = std::move(workers);
  full_ = false;
}

PartitionedSamples::Owners PartitionedSamples::owners(std::int64_t sample) const {
  const std::shared_lock lock(mutex_);
  Owners owners{.first = owner_of(sample, members_), .self = self_};
  auto others = members_;
  std::erase(others, owners.first);
  owners.second = owner_of(sample, others);
  return owners;
}

Result<void> PartitionedSamples::raw(std::int64_t sample, std::vector<std::byte>& out) {
  if (cache_.find(sample, out)) {
    ++hits_;
    return {};
  }
  const auto owners = this->owners(sample);
  if (!ask(owners.first, owners.self, sample, out) && !ask(owners.second, owners.self, sample, out)) {
    if (auto read = storage_.raw(sample, out); !read) return read;
    if (owners.first >= 0 && owners.first != owners.self) peers_.give(owners.first, sample, out);
  }
  keep(sample, out);
  return {};
}

/// False also where there is no other worker to ask.
bool PartitionedSamples::ask(int worker, int self, std::int64_t sample, std::vector<std::byte>& out) {
  if (worker < 0 || worker == self) return false;
  const auto found = peers_.ask(worker, sample, out);
  if (!found) ++peers_failed_;
  if (found && *found) ++from_peers_;
  return found && *found;
}

void PartitionedSamples::keep(std::int64_t sample, std::span<const std::byte> bytes) {
  const auto is_own = [this](std::int64_t one) { return owner_of(one, members_) == self_; };
  bool own = false, full = false;
  {
    const std::shared_lock lock(mutex_);
    own = is_own(sample);
    full = full_;
  }
  if (full && !own) return;
  if (cache_.offer(sample, bytes) || !own || full || cache_.holds(sample)) return;
  {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(full_, true)) cache_.drop([&](std::int64_t held) { return !is_own(held); });
  }
  cache_.offer(sample, bytes);
}

SourceCounts PartitionedSamples::counts() const {
  auto counts = storage_.counts();
  counts.hits += hits_;
  counts.from_peers += from_peers_;
  counts.peers_failed += peers_failed_;
  return counts;
}

}  // namespace mayfly
