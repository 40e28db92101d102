#include "cli/what_if.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/text.h"

namespace mayfly::cli {
namespace {

/// "50%", "2x" or a bare number; the unit is optional, but no other may stand there.
std::optional<double> number_with(std::string_view text, std::string_view unit) {
  if (!unit.empty() && text.ends_with(unit)) text.remove_suffix(unit.size());
  return parse_number(text);
}

Result<void> change(std::string_view key, std::string_view value, DataPath& path) {
  const auto number = number_with(value, key == "cache" ? "%" : key == "device" ? "x" : "");
  const auto wanted = [&](std::string_view what) { return fail("--what-if {}={}: want {}", key, value, what); };
  if (key == "cache") {
    if (!number || *number < 0 || *number > 100) return wanted("a share of the data set such as 50%");
    path.cached = *number / 100;
  } else if (key == "threads") {
    if (!number || *number < 1) return wanted("prep threads, 1 or more");
    path.threads = *number;
  } else if (key == "cores") {
    if (!number || *number <= 0) return wanted("cores above 0");
    path.cores = *number;
  } else if (key == "storage") {
    if (!number || *number <= 0) return wanted("MB/s above 0");
    path.storage = megabytes_per_second(*number);
  } else if (key == "device") {
    if (!number || *number <= 0) return wanted("how many times as fast, such as 2x");
    path.device *= *number;
    path.device_core_s /= *number;
  } else if (key == "machines") {
    if (!number || *number < 1 || *number > 1e6 || *number != std::floor(*number))
      return wanted("a whole number from 1 to 10^6");
    path.machines = static_cast<int>(*number);
    path.partitioned = true;
  } else {
    return fail("--what-if '{}': want cache, threads, cores, storage, device or machines", key);
  }
  return {};
}

WhatIf changed(std::string text, DataPath path) { return {.text = std::move(text), .path = path}; }

}  // namespace

Result<WhatIf> parse_what_if(std::string_view text, const DataPath& path) {
  WhatIf found{.text = std::string(text), .path = path};
  for (const std::string_view part : split(text, ',')) {
    const auto equals = part.find('=');
    if (equals == part.npos) return fail("--what-if '{}': want KEY=VALUE", part);
    const auto done = change(trimmed(part.substr(0, equals)), trimmed(part.substr(equals + 1)), found.path);
    if (!done) return unexpected(done.error());
  }
  return found;
}

std::vector<WhatIf> usual_what_ifs(const DataPath& path) {
  std::vector<WhatIf> found{changed("as it is", path)};
  DataPath other = path;
  if (path.prep > 0) {
    other.threads = 2 * path.threads;
    found.push_back(changed(fmt::format("{:g} prep threads", other.threads), other));
    other.cores = 2 * path.cores;
    found.push_back(changed(fmt::format("{:g} prep threads, {:g} cores", other.threads, other.cores), other));
  }
  other = path;
  other.device *= 2;
  other.device_core_s /= 2;
  found.push_back(changed("device 2x as fast", other));
  if (path.storage.value <= 0) return found;
  for (const double share : {0.5, 1.0}) {
    if (share <= path.cached) continue;
    other = path;
    other.cached = share;
    found.push_back(changed(fmt::format("cache of {:.0f} %", 100 * share), other));
  }
  other = path;
  other.storage = 2 * path.storage;
  found.push_back(changed("storage 2x as fast", other));
  if (path.cached > 0 && path.cached < 1) {
    other = path;
    other.machines = 2;
    other.partitioned = true;
    found.push_back(changed("2 machines, shared caches", other));
  }
  return found;
}

}  // namespace mayfly::cli
