#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mayfly {

/// A line of a journal in words, with its time in front; nothing for steps, ticks and other lines that say nothing to a
/// person, and for those that are broken.
std::optional<std::string> story_line(std::string_view journal_line);

/// Reads what is appended to a file, in whole lines. The file may not be there yet, and may be written anew from its
/// beginning: what is then told again is told from the first line on, and `anew` says so.
class LineTail {
 public:
  explicit LineTail(std::filesystem::path path) : path_(std::move(path)) {}

  struct Lines {
    bool anew = false;
    std::vector<std::string> lines{};
  };
  /// Since the last call. `all`: also an unfinished last line, when no process will finish it.
  Lines next(bool all = false);

 private:
  std::filesystem::path path_;
  std::size_t place_ = 0;  ///< behind the last line told
  std::string last_{};     ///< the bytes before that place, to see whether they are still the same
};

}  // namespace mayfly
