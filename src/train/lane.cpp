#include "train/lane.h"

#include <algorithm>
#include <thread>

namespace mayfly {
namespace {

constexpr Seconds kBurst{0.005};

Lane::Clock::duration time_of(std::size_t bytes, BytesPerSecond rate) {
  return std::chrono::duration_cast<Lane::Clock::duration>(Bytes{static_cast<double>(bytes)} / rate);
}

}  // namespace

Lane::Lane(BytesPerSecond rate)
    : rate_(rate), burst_(std::max(time_of(kChunk, rate), std::chrono::duration_cast<Clock::duration>(kBurst))) {}

Lane::Clock::time_point Lane::passage(std::size_t bytes, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  // What was not used is lost but for a burst, which also makes up for sleeping too long.
  free_ = std::max(free_, now - burst_) + time_of(bytes, rate_);
  return free_;
}

void Lane::pass(std::size_t bytes) {
  const auto now = Clock::now();
  if (const auto through = passage(bytes, now); through > now) std::this_thread::sleep_until(through);
}

}  // namespace mayfly
