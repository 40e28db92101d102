#include "vault/pieces.h"

#include <algorithm>

namespace mayfly {

std::uint64_t Pieces::size() const {
  std::uint64_t sum = 0;
  for (const auto span : spans_) sum += span.size();
  return sum;
}

Pieces Pieces::slice(std::uint64_t offset, std::uint64_t size) const {
  std::vector<std::span<const std::byte>> chosen;
  for (const auto span : spans_) {
    if (size == 0) break;
    const std::uint64_t skipped = std::min<std::uint64_t>(offset, span.size());
    const std::uint64_t taken = std::min<std::uint64_t>(size, span.size() - skipped);
    offset -= skipped;
    size -= taken;
    if (taken > 0) chosen.push_back(span.subspan(skipped, taken));
  }
  return chosen;
}

}  // namespace mayfly
