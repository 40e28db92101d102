#include "train/coverage.h"

#include <algorithm>
#include <iterator>

namespace mayfly {

bool Coverage::add(ShardRange part) {
  // Not by end(): what a stranger sent may overflow.
  if (part.first < whole_.first || part.first > whole_.end() || part.count > whole_.end() - part.first) return false;
  if (part.count == 0) return true;
  auto after = parts_.lower_bound(part.first);
  if (after != parts_.end() && after->first < part.end()) return false;
  auto before = after == parts_.begin() ? parts_.end() : std::prev(after);
  if (before != parts_.end() && before->second > part.first) return false;
  covered_ += part.count;
  auto end = part.end();
  if (after != parts_.end() && after->first == end) {
    end = after->second;
    parts_.erase(after);
  }
  if (before != parts_.end() && before->second == part.first) {
    before->second = end;
  } else {
    parts_[part.first] = end;
  }
  return true;
}

std::vector<ShardRange> Coverage::missing() const {
  std::vector<ShardRange> gaps;
  auto at = whole_.first;
  for (const auto& [first, end] : parts_) {
    if (first > at) gaps.push_back({.first = at, .count = first - at});
    at = end;
  }
  if (at < whole_.end()) gaps.push_back({.first = at, .count = whole_.end() - at});
  return gaps;
}

ShardRange common_part(ShardRange a, ShardRange b) {
  const auto first = std::max(a.first, b.first), end = std::min(a.end(), b.end());
  return {.first = first, .count = end > first ? end - first : 0};
}

}  // namespace mayfly
