#include "data/meeting_place.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "base/rng.h"

namespace mayfly {
namespace {

using namespace std::chrono_literals;

/// A process that locks and unlocks for a while; it ends with 1 where the lock was not to be had.
pid_t start_locking(const MeetingPlace::Options& options) {
  const auto child = ::fork();
  if (child != 0) return child;
  auto place = MeetingPlace::enter(options);
  if (!place) ::_exit(2);
  const auto end = std::chrono::steady_clock::now() + 30ms;
  while (std::chrono::steady_clock::now() < end) {
    if (!(*place)->lock()) ::_exit(1);
    for (std::atomic<int> turns = 0; turns < 100; ++turns) continue;  // the others come meanwhile
    (*place)->unlock(false);
  }
  ::_exit(0);
}

// Where a waking can be lost with the process that it was for, another waits out its patience in about one round of
// twenty.
TEST(MeetingPlace, KilledWaitersHoldNobodyUp) {
  const MeetingPlace::Options options{.name = fmt::format("test-lock-{}", ::getpid()),
                                      .key = 1,
                                      .common_bytes = 64,
                                      .own_bytes = 64,
                                      .patience = Seconds(10)};
  Rng rng(3);
  for (int round = 0; round < 100; ++round) {
    std::vector<pid_t> children;
    for (int i = 0; i < 6; ++i) children.push_back(start_locking(options));
    std::this_thread::sleep_for(std::chrono::microseconds(5000 + rng.below(20000)));
    for (int i = 0; i < 2; ++i) ::kill(children[static_cast<std::size_t>(rng.below(6))], SIGKILL);
    for (const auto child : children) {
      int status = 0;
      ::waitpid(child, &status, 0);
      EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0) << WEXITSTATUS(status);
    }
  }
  EXPECT_TRUE(MeetingPlace::enter(options)) << "and removes what they left";
}

}  // namespace
}  // namespace mayfly
