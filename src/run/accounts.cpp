#include "run/accounts.h"

#include <algorithm>

namespace mayfly {
namespace {

constexpr Seconds kRecent{5};

}  // namespace

void Accounts::preempted(Seconds now, bool trained) {
  ++preemptions_;
  if (trained) open_.push_back(now);
}

void Accounts::committed(Seconds now, std::int64_t samples, double loss, double staleness) {
  for (const Seconds lost : open_) recoveries_.push_back(now - lost);
  open_.clear();
  recent_.push_back({now, samples});
  while (recent_.size() > 2 && recent_.front().time < now - kRecent) recent_.pop_front();
  loss_ = loss;
  ++steps_;
  staleness_ += staleness;
  worst_staleness_ = std::max(worst_staleness_, staleness);
}

void Accounts::rolled_back(std::int64_t from, std::int64_t to) { redone_ += std::max<std::int64_t>(0, from - to); }

double Accounts::samples_per_s(Seconds now) const {
  if (recent_.size() < 2 || now - recent_.back().time > 2 * kRecent) return 0;
  double samples = 0;
  for (std::size_t i = 1; i < recent_.size(); ++i) samples += static_cast<double>(recent_[i].samples);
  const double span = (recent_.back().time - recent_.front().time).count();
  return span > 0 ? samples / span : 0;
}

std::optional<Seconds> Accounts::recovery_p50() const {
  if (recoveries_.empty()) return std::nullopt;
  auto sorted = recoveries_;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

std::optional<Seconds> Accounts::recovery_max() const {
  if (recoveries_.empty()) return std::nullopt;
  return *std::max_element(recoveries_.begin(), recoveries_.end());
}

std::optional<Fed> Accounts::loader() const {
  if (fed_.empty()) return std::nullopt;
  Fed sum;
  for (const auto& [worker, fed] : fed_) {
    sum.hits += fed.hits;
    sum.from_peers += fed.from_peers;
    sum.from_storage += fed.from_storage;
    sum.peers_failed += fed.peers_failed;
    sum.prepared += fed.prepared;
    sum.received += fed.received;
    sum.fetch_s += fed.fetch_s;
    sum.prep_s += fed.prep_s;
    sum.wait_s += fed.wait_s;
  }
  return sum;
}

}  // namespace mayfly
