#pragma once

#include <chrono>

namespace mayfly {

/// The wall clock, in seconds since 1970.
inline double unix_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace mayfly
