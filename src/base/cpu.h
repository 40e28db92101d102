#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace mayfly {

/// Numbers of the cores that this process may use: fewer than the machine has under taskset or in a container. At least
/// one.
std::vector<int> allowed_cores();

/// CPU time per second that this process's control group allows, in cores: cpu.max (version 2) or cpu.cfs_quota_us
/// (version 1), the least on the way up. Nothing where there is no limit. `root` stands before /proc and /sys.
std::optional<double> cpu_quota(const std::filesystem::path& root = "/");

/// Threads that computing here should use: one a core, as far as the quota goes.
int compute_threads();

/// What makes LibTorch fast on this processor, to be set before its libraries are loaded: OpenBLAS of Debian 12 does
/// not know newer processors and would fall back to SSE3, five times slower; threads that wait must not spin where
/// cores are shared. What the user has set should stay.
struct ComputeSetting {
  std::string name{};
  std::string value{};
};
std::vector<ComputeSetting> compute_settings(int threads);

}  // namespace mayfly
