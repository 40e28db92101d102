#include "wire/frame.h"

#include <cstdint>

namespace mayfly {

std::string framed(std::string_view text) {
  std::string frame(4, '\0');
  for (std::size_t i = 0; i < 4; ++i) frame[i] = static_cast<char>(text.size() >> (8 * i) & 0xff);
  return frame.append(text);
}

Result<std::optional<std::string>> FrameReader::next() {
  const std::size_t held = buffer_.size() - at_;
  if (held < 4) return rest();
  std::uint32_t length = 0;
  for (std::size_t i = 0; i < 4; ++i)
    length |= static_cast<std::uint32_t>(static_cast<unsigned char>(buffer_[at_ + i])) << (8 * i);
  if (length > kLongestFrame) return fail("a frame of {} bytes, want at most {}", length, kLongestFrame);
  if (held - 4 < length) return rest();
  std::string frame = buffer_.substr(at_ + 4, length);
  at_ += 4 + length;
  return frame;
}

std::optional<std::string> FrameReader::rest() {
  buffer_.erase(0, at_);
  at_ = 0;
  return std::nullopt;
}

}  // namespace mayfly
