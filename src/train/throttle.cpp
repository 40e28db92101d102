#include "train/throttle.h"

#include <ctime>
#include <thread>

namespace mayfly {
namespace {

Seconds core_time() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return Seconds(static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec));
}

}  // namespace

void Throttle::begin() {
  if (!share_) return;
  start_ = std::chrono::steady_clock::now();
  core_ = core_time();
}

void Throttle::hold() {
  if (!share_) return;
  const Seconds passed = std::chrono::steady_clock::now() - start_;
  std::this_thread::sleep_for(rest_time(core_time() - core_, passed, *share_));
}

}  // namespace mayfly
