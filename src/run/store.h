#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "control/event.h"

namespace mayfly {

/// What a run must not forget when its controller is killed: everything the controller was told, in order, and a few
/// notes. The controller is a pure function of its events, so they are its whole state.
///
/// SQLite in WAL mode. A write is durable against the death of any process when the call returns. If the operating
/// system dies too, the last moments may be missing, never something in between; the run then goes on from the newest
/// checkpoint, be it further than the store or not (docs/decisions/0007-real-training.md).
class Store {
 public:
  /// Creates the file where there is none. Another process that has it open for a run is an error, unless it is gone
  /// two seconds later: a child of a controller that was killed holds its files until it becomes another program.
  static Result<Store> open(const std::filesystem::path& path);
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;
  ~Store();

  /// One event or remark (a journal line that is no event). Steps that follow each other in one generation become one.
  Result<void> append(const TimedEvent& event);
  /// The event and a note: both or neither.
  Result<void> append(const TimedEvent& event, std::string_view key, std::string_view value);
  Result<void> append_remark(std::string_view journal_line);
  /// In order; as journal lines.
  Result<std::vector<std::string>> lines() const;

  Result<void> note(std::string_view key, std::string_view value);
  std::optional<std::string> noted(std::string_view key) const;
  Result<std::map<std::string, std::string>> notes() const;

 private:
  struct Parts;
  explicit Store(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace mayfly
