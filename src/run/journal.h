#pragma once

#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/event.h"

namespace mayfly {

/// journal.jsonl of a run. A generation's first step is a line of its own, written at once; those that follow each
/// other become one, written when something else happens or flush() is called.
class Journal {
 public:
  /// Written anew: the store has everything that was in an older one.
  /// `standing`: what is paid whatever machines there are.
  static Result<Journal> create(const std::filesystem::path& path, const std::string& job, UsdPerHour standing = {});

  /// What the controller recorded about an event, its own line first.
  void add(const TimedEvent& event, const std::vector<std::string>& records);
  void add_line(const std::string& line);
  void flush();

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  explicit Journal(std::unique_ptr<std::FILE, Close> file) : file_(std::move(file)) {}
  void write(const std::string& line);

  std::unique_ptr<std::FILE, Close> file_;
  std::optional<TimedEvent> steps_{};  ///< not written yet
  std::int64_t generation_ = -1;       ///< of the last step
};

}  // namespace mayfly
