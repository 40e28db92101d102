#include "base/cpu.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "support/temp_folder.h"

namespace mayfly {
namespace {

void write(const std::filesystem::path& file, const std::string& text) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file) << text;
}

// Version 2: a pod of 1.5 cores inside a slice of 4.
TEST(CpuQuota, TheLeastLimitOnTheWayUpHolds) {
  const support::TempFolder root;
  write(root.path() / "proc/self/cgroup", "0::/slice/pod\n");
  write(root.path() / "sys/fs/cgroup/slice/cpu.max", "400000 100000\n");
  write(root.path() / "sys/fs/cgroup/slice/pod/cpu.max", "150000 100000\n");
  EXPECT_EQ(cpu_quota(root.path()), 1.5);
}

TEST(CpuQuota, WithoutALimitThereIsNone) {
  const support::TempFolder root;
  write(root.path() / "proc/self/cgroup", "0::/\n");
  write(root.path() / "sys/fs/cgroup/cpu.max", "max 100000\n");
  EXPECT_EQ(cpu_quota(root.path()), std::nullopt);
  EXPECT_EQ(cpu_quota(root.path() / "nowhere"), std::nullopt);
}

// Version 1: half a core; -1 above says that there is no limit.
TEST(CpuQuota, VersionOneCountsTheQuotaInMicrosecondsOfAPeriod) {
  const support::TempFolder root;
  write(root.path() / "proc/self/cgroup", "3:memory:/a\n2:cpu,cpuacct:/a/b\n");
  write(root.path() / "sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "-1\n");
  write(root.path() / "sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
  write(root.path() / "sys/fs/cgroup/cpu/a/b/cpu.cfs_quota_us", "50000\n");
  write(root.path() / "sys/fs/cgroup/cpu/a/b/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cpu_quota(root.path()), 0.5);
}

TEST(ComputeSettings, ThreadsAreAsManyAsAsked) {
  const auto settings = compute_settings(3);
  ASSERT_FALSE(settings.empty());
  EXPECT_EQ(settings[0].name, "OMP_NUM_THREADS");
  EXPECT_EQ(settings[0].value, "3");
  EXPECT_GE(compute_threads(), 1);
}

}  // namespace
}  // namespace mayfly
