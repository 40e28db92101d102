#include "engine/limits.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>

namespace mayfly {

Seconds hand_over_time(Seconds lifetime) { return std::min(Seconds(30), lifetime / 10); }

std::vector<std::string> limit_arguments(const MachineLimits& limits) {
  std::vector<std::string> words;
  if (limits.cpu_share) words.insert(words.end(), {"--cpu-share", fmt::format("{:.4g}", *limits.cpu_share)});
  if (limits.network)
    words.insert(words.end(), {"--network", fmt::format("{:.6g}MB/s", in_megabytes(*limits.network))});
  return words;
}

bool limit_this_process(const MachineLimits& limits) {
  if (!limits.memory_mib) return true;
  // Not RLIMIT_AS: LibTorch maps gigabytes of libraries that it never touches.
  const rlimit most{.rlim_cur = static_cast<rlim_t>(*limits.memory_mib) << 20,
                    .rlim_max = static_cast<rlim_t>(*limits.memory_mib) << 20};
  return ::setrlimit(RLIMIT_DATA, &most) == 0;
}

Json limits_json(const MachineLimits& limits) {
  Json json = Json::object();
  if (limits.cpu_share) json["cpu_share"] = *limits.cpu_share;
  if (limits.network) json["bytes_per_s"] = limits.network->value;
  if (limits.memory_mib) json["memory_mib"] = *limits.memory_mib;
  if (limits.lifetime) json["lifetime_s"] = limits.lifetime->count();
  return json;
}

MachineLimits limits_from(const Json& json) {
  MachineLimits limits;
  if (json.contains("cpu_share")) limits.cpu_share = json["cpu_share"].get<double>();
  if (json.contains("bytes_per_s")) limits.network = BytesPerSecond{json["bytes_per_s"].get<double>()};
  if (json.contains("memory_mib")) limits.memory_mib = json["memory_mib"].get<int>();
  if (json.contains("lifetime_s")) limits.lifetime = Seconds(json["lifetime_s"].get<double>());
  return limits;
}

}  // namespace mayfly
