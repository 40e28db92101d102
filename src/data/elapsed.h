#pragma once

#include <chrono>

#include "base/units.h"

namespace mayfly {

/// In seconds, until now.
inline double since(std::chrono::steady_clock::time_point start) {
  return Seconds(std::chrono::steady_clock::now() - start).count();
}

}  // namespace mayfly
