#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/units.h"

namespace mayfly {

/// What a process may use of this computer, to play a machine that has less. Absent: not held back.
struct MachineLimits {
  std::optional<double> cpu_share{};        ///< of a core
  std::optional<BytesPerSecond> network{};  ///< each way
  std::optional<int> memory_mib{};          ///< of its own data; code and what files are mapped for do not count
  std::optional<Seconds> lifetime{};        ///< a function's time limit
  bool operator==(const MachineLimits&) const = default;
};

/// How long before the end of its lifetime a machine's successor is started: 30 s, or a tenth of a shorter life.
Seconds hand_over_time(Seconds lifetime);

/// What mayfly-train keeps to by itself: "--cpu-share 0.42 --network 12.5MB/s".
std::vector<std::string> limit_arguments(const MachineLimits& limits);
/// What the kernel sees to. Called in the new process before it becomes mayfly-train; false: refused, errno says why.
bool limit_this_process(const MachineLimits& limits);

Json limits_json(const MachineLimits& limits);
MachineLimits limits_from(const Json& json);

}  // namespace mayfly
