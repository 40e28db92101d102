#pragma once

#include <cstdint>
#include <optional>

#include "base/units.h"

namespace mayfly {

/// Where a run stands.
struct RunProgress {
  Seconds time{};
  std::int64_t step = 0;
  std::int64_t samples = 0;
  std::optional<std::int64_t> target{};
  double loss = 0;
  double samples_per_s = 0;
  int machines = 0;
  std::optional<Usd> spent{};
  std::optional<Seconds> left{};  ///< to the target at this speed
  std::optional<Seconds> deadline{};
};

}  // namespace mayfly
