#pragma once

#include <chrono>

namespace mayfly {

/// Seconds since 1970: signatures and keys have their time.
inline double unix_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace mayfly
