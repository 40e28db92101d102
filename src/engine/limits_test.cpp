#include "engine/limits.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace mayfly {
namespace {

using Words = std::vector<std::string>;

TEST(MachineLimits, AreSpelledAsMayflyTrainReadsThem) {
  EXPECT_EQ(limit_arguments({.cpu_share = .42, .network = megabytes_per_second(12.5)}),
            (Words{"--cpu-share", "0.42", "--network", "12.5MB/s"}));
  EXPECT_EQ(limit_arguments({.memory_mib = 128, .lifetime = Seconds(9)}), Words{});
}

TEST(MachineLimits, ComeBackFromJsonToTheBit) {
  const MachineLimits limits{
      .cpu_share = 1. / 3, .network = BytesPerSecond{1e9 / 7}, .memory_mib = 1728, .lifetime = Seconds(900. / 7)};
  EXPECT_EQ(limits_from(Json::parse(limits_json(limits).dump())), limits);
  EXPECT_EQ(limits_from(limits_json({})), MachineLimits{});
}

TEST(MachineLimits, LeaveATenthOfALifeForTheHandOver) {
  EXPECT_EQ(hand_over_time(Seconds(60)), Seconds(6));
  EXPECT_EQ(hand_over_time(Seconds(900)), Seconds(30));
}

/// Whether a process under these limits gets so much memory.
bool gets(const MachineLimits& limits, std::size_t mib) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (!limit_this_process(limits)) ::_exit(2);
    void* memory = ::mmap(nullptr, mib << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ::_exit(memory == MAP_FAILED ? 1 : 0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(MachineLimits, OfMemoryAreTheKernels) {
  EXPECT_TRUE(gets({}, 2048));
#ifndef MAYFLY_SANITIZED  // its own shadow would not fit
  // OpenBLAS, which comes with Ceres, reserves some 250 MiB that it never touches.
  EXPECT_TRUE(gets({.memory_mib = 1024}, 64));
  EXPECT_FALSE(gets({.memory_mib = 1024}, 2048));
#endif
}

}  // namespace
}  // namespace mayfly
