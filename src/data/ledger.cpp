#include "data/ledger.h"

#include <algorithm>
#include <limits>

namespace mayfly {
namespace {

bool starts_before(const SampleRange& a, const SampleRange& b) { return a.first < b.first; }

/// Into sorted ranges that stay apart: what it touches becomes one with it.
void merge_into(std::vector<SampleRange>& ranges, SampleRange range) {
  auto at = std::lower_bound(ranges.begin(), ranges.end(), range, starts_before);
  if (at != ranges.begin() && std::prev(at)->end() == range.first) {
    --at;
    at->count += range.count;
  } else {
    at = ranges.insert(at, range);
  }
  const auto next = std::next(at);
  if (next == ranges.end() || at->end() != next->first) return;
  at->count += next->count;
  ranges.erase(next);
}

}  // namespace

Result<Ledger> Ledger::restored(std::vector<SampleRange> committed) {
  std::int64_t end = -1;
  for (const SampleRange& range : committed) {
    if (range.count <= 0 || range.first > std::numeric_limits<std::int64_t>::max() - range.count)
      return fail("a ledger with a range of {} samples at {}, want 1 or more", range.count, range.first);
    if (range.first <= end)
      return fail("a ledger with a range at {}, want it apart from the one before, which ends at {}", range.first, end);
    end = range.end();
  }
  Ledger ledger;
  ledger.committed_ = std::move(committed);
  return ledger;
}

SampleRange Ledger::lease(std::int64_t most, std::int64_t end) {
  // Both lists are sorted and no range of one overlaps one of the other: the first place that neither covers starts the
  // lease, and the nearest range behind it ends it.
  std::int64_t first = 0;
  std::int64_t limit = end;
  auto committed = committed_.begin();
  auto leased = leased_.begin();
  while (committed != committed_.end() || leased != leased_.end()) {
    const bool take_committed =
        leased == leased_.end() || (committed != committed_.end() && committed->first < leased->first);
    const SampleRange& taken = take_committed ? *committed++ : *leased++;
    if (taken.first > first) {
      limit = std::min(limit, taken.first);
      break;
    }
    first = taken.end();
  }
  const std::int64_t count = std::min(most, limit - first);
  if (count <= 0) return {.first = first, .count = 0};
  const SampleRange range{.first = first, .count = count};
  leased_.insert(std::lower_bound(leased_.begin(), leased_.end(), range, starts_before), range);
  return range;
}

bool Ledger::commit(SampleRange range) {
  if (!give_back(range)) return false;
  merge_into(committed_, range);
  return true;
}

bool Ledger::give_back(SampleRange range) {
  const auto at = std::find(leased_.begin(), leased_.end(), range);
  if (at == leased_.end()) return false;
  leased_.erase(at);
  return true;
}

void Ledger::give_back_all() { leased_.clear(); }

std::int64_t Ledger::samples() const {
  std::int64_t sum = 0;
  for (const SampleRange& range : committed_) sum += range.count;
  return sum;
}

std::int64_t Ledger::frontier() const {
  return committed_.empty() || committed_.front().first > 0 ? 0 : committed_.front().end();
}

}  // namespace mayfly
