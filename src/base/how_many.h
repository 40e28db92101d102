#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace mayfly {

/// "1 machine", "2 machines".
inline std::string how_many(long long count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace mayfly
