#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace mayfly {

/// A frame: four bytes of length, least first, then that many bytes of text.
inline constexpr std::size_t kLongestFrame = 16 << 20;
std::string framed(std::string_view text);

/// Takes bytes as they come and gives out whole frames.
class FrameReader {
 public:
  void take(std::string_view bytes) { buffer_ += bytes; }
  /// The next whole frame; nothing yet; or an error for a length that no peer would send.
  Result<std::optional<std::string>> next();

 private:
  /// Nothing whole is left: forgets what was given out.
  std::optional<std::string> rest();

  std::string buffer_{};
  std::size_t at_ = 0;
};

}  // namespace mayfly
