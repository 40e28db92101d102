#include "wire/frame.h"

#include <cstdint>

namespace mayfly {

std::string framed(std::string_view text) {
  std::string frame(4, '\0');
  for (std::size_t i = 0; i < 4; ++i) frame[i] = static_cast<char>(text.size() >> (8 * i) & 0xff);
  return frame.append(text);
}

Result<std::optional<std::string>> FrameReader::next() {
  if (buffer_.size() - at_ < 4) return std::nullopt;
  std::uint32_t length = 0;
  for (std::size_t i = 0; i < 4; ++i)
    length |= static_cast<std::uint32_t>(static_cast<unsigned char>(buffer_[at_ + i])) << (8 * i);
  if (length > kLongestFrame) return fail("a frame of {} bytes, want at most {}", length, kLongestFrame);
  if (buffer_.size() - at_ - 4 < length) {
    buffer_.erase(0, at_);
    at_ = 0;
    return std::nullopt;
  }
  std::string frame = buffer_.substr(at_ + 4, length);
  at_ += 4 + length;
  return frame;
}

}  // namespace mayfly
