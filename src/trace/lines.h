#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/text.h"

namespace mayfly {

/// What a file said, short enough for a message.
inline std::string shown(std::string_view text) {
  constexpr std::size_t kShown = 60;
  return text.size() > kShown ? fmt::format("'{}...'", text.substr(0, kShown)) : fmt::format("'{}'", text);
}

/// The lines of a text that hold something, trimmed; blank lines and those that start with '#' are passed over. Nothing
/// is copied: files of ten million rows are read in seconds.
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}

  std::optional<std::string_view> next() {
    while (!rest_.empty()) {
      const auto end = rest_.find('\n');
      const auto line = trimmed(rest_.substr(0, end));
      ended_ = end != std::string_view::npos;
      rest_.remove_prefix(ended_ ? end + 1 : rest_.size());
      ++number_;
      if (!line.empty() && line[0] != '#') return line;
    }
    return {};
  }
  /// Of the line that next() returned.
  int number() const { return number_; }
  /// Whether that line was closed by a line end; the last one of a file cut short is not.
  bool ended() const { return ended_; }

 private:
  std::string_view rest_;
  int number_ = 0;
  bool ended_ = false;
};

/// Cuts the part before the next comma off a line, trimmed.
inline std::string_view cut_field(std::string_view& line) {
  const auto comma = line.find(',');
  const auto field = trimmed(line.substr(0, comma));
  line.remove_prefix(comma == std::string_view::npos ? line.size() : comma + 1);
  return field;
}

/// Exactly N fields, or nothing.
template <std::size_t N>
std::optional<std::array<std::string_view, N>> fields(std::string_view line) {
  std::array<std::string_view, N> parts;
  for (std::size_t i = 0; i < N; ++i) {
    const auto comma = line.find(',');
    if ((comma == std::string_view::npos) != (i + 1 == N)) return {};
    parts[i] = cut_field(line);
  }
  return parts;
}

}  // namespace mayfly
