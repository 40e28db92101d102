#include "data/raw_samples.h"

#include <algorithm>
#include <thread>

namespace mayfly {

Result<void> Storage::raw(std::int64_t sample, std::vector<std::byte>& out) {
  if (auto fetched = data_.fetch(sample, out); !fetched) return fetched;
  if (rate_) hold_to_rate(out.size());
  samples_.fetch_add(1, std::memory_order_relaxed);
  bytes_.fetch_add(static_cast<std::int64_t>(out.size()), std::memory_order_relaxed);
  return {};
}

void Storage::hold_to_rate(std::size_t bytes) {
  const Seconds busy = Bytes{static_cast<double>(bytes)} / *rate_;
  decltype(free_) done;
  {
    const std::lock_guard lock(mutex_);
    free_ =
        std::max(free_, std::chrono::steady_clock::now()) + std::chrono::duration_cast<decltype(free_)::duration>(busy);
    done = free_;
  }
  std::this_thread::sleep_until(done);
}

SourceCounts Storage::counts() const {
  return {.from_storage = samples_, .storage_bytes = static_cast<double>(bytes_)};
}

Result<void> CachedSamples::raw(std::int64_t sample, std::vector<std::byte>& out) {
  if (cache_.find(sample, out)) {
    hits_.fetch_add(1, std::memory_order_relaxed);
    return {};
  }
  if (auto got = below_.raw(sample, out); !got) return got;
  cache_.offer(sample, out);
  return {};
}

SourceCounts CachedSamples::counts() const {
  auto counts = below_.counts();
  counts.hits += hits_;
  return counts;
}

}  // namespace mayfly
