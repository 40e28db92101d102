#include "base/cpu.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "base/file.h"
#include "base/text.h"

namespace mayfly {
namespace {

std::optional<double> number_in(const std::filesystem::path& file) {
  const auto text = load_text(file);
  return text ? parse_number(trimmed(*text)) : std::nullopt;
}

/// "QUOTA PERIOD" or "max PERIOD".
std::optional<double> quota_v2(const std::filesystem::path& folder) {
  const auto text = load_text(folder / "cpu.max");
  if (!text) return std::nullopt;
  const auto words = split(trimmed(*text), ' ');
  if (words.size() != 2) return std::nullopt;
  const auto quota = parse_number(words[0]);
  const auto period = parse_number(words[1]);
  return quota && period && *period > 0 ? std::optional(*quota / *period) : std::nullopt;
}

std::optional<double> quota_v1(const std::filesystem::path& folder) {
  const auto quota = number_in(folder / "cpu.cfs_quota_us");
  const auto period = number_in(folder / "cpu.cfs_period_us");
  // -1: no limit.
  return quota && period && *quota > 0 && *period > 0 ? std::optional(*quota / *period) : std::nullopt;
}

/// A limit of any group above holds too.
template <class Quota>
std::optional<double> least_upwards(const std::filesystem::path& mount, std::filesystem::path group, Quota quota) {
  std::optional<double> least;
  while (true) {
    if (const auto here = quota(mount / group.relative_path())) least = std::min(least.value_or(*here), *here);
    if (!group.has_relative_path()) return least;
    group = group.parent_path();
  }
}

const char* blas_core() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return "SkylakeX";
  if (__builtin_cpu_supports("avx2")) return "Haswell";
#endif
  return nullptr;
}

}  // namespace

std::vector<int> allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (::sched_getaffinity(0, sizeof set, &set) == 0) {
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(static_cast<std::size_t>(core), &set)) cores.push_back(core);
    }
  }
  return cores.empty() ? std::vector<int>{0} : cores;
}

std::optional<double> cpu_quota(const std::filesystem::path& root) {
  const auto groups = load_text(root / "proc/self/cgroup");
  if (!groups) return std::nullopt;
  std::optional<double> least;
  const auto consider = [&](std::optional<double> quota) {
    if (quota) least = std::min(least.value_or(*quota), *quota);
  };
  // "ID:CONTROLLERS:PATH", without controllers in version 2.
  for (const std::string_view line : split(*groups, '\n')) {
    const auto first = line.find(':');
    const auto second = first == line.npos ? line.npos : line.find(':', first + 1);
    if (second == line.npos) continue;
    const auto controllers = split(line.substr(first + 1, second - first - 1), ',');
    const std::filesystem::path group(line.substr(second + 1));
    const auto mounts = root / "sys/fs/cgroup";
    if (line.substr(first + 1, second - first - 1).empty()) {
      consider(least_upwards(mounts, group, quota_v2));
    } else if (std::find(controllers.begin(), controllers.end(), "cpu") != controllers.end()) {
      consider(least_upwards(mounts / "cpu", group, quota_v1));
    }
  }
  return least;
}

int compute_threads() {
  const auto cores = static_cast<int>(allowed_cores().size());
  const auto quota = cpu_quota();
  return quota ? std::clamp(static_cast<int>(std::ceil(*quota)), 1, cores) : cores;
}

std::vector<ComputeSetting> compute_settings(int threads) {
  std::vector<ComputeSetting> settings{{"OMP_NUM_THREADS", std::to_string(threads)}, {"OMP_WAIT_POLICY", "PASSIVE"}};
  if (const char* core = blas_core()) settings.push_back({"OPENBLAS_CORETYPE", core});
  return settings;
}

}  // namespace mayfly
