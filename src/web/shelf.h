#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "report/chronicle.h"
#include "report/view.h"
#include "status/folder.h"
#include "status/story.h"

namespace mayfly {

/// One run, read as it grows. Any thread may ask; the files are looked at a few times a second at most, however many
/// ask.
class WatchedRun {
 public:
  WatchedRun(std::filesystem::path directory, const Catalog* catalog);

  struct Snapshot {
    std::uint64_t version = 0;                  ///< another one: something changed
    bool over = false;                          ///< no process drives the run
    std::shared_ptr<const std::string> view{};  ///< docs/formats.md#view, as text
  };
  Snapshot snapshot();

 private:
  void refresh();

  const std::filesystem::path directory_;
  const Catalog* catalog_;
  std::mutex mutex_{};  ///< of what follows
  LineTail tail_;
  Chronicle chronicle_{};
  std::string seen_{};  ///< of what lies beside the journal, to see whether it changed
  std::optional<std::chrono::steady_clock::time_point> looked_{};
  Snapshot snapshot_{};
};

/// The runs of a folder, or the one run that the folder is. Nothing outside of it can be named: a name is looked up
/// among those that are there.
class Shelf {
 public:
  /// `catalog` outlives the shelf.
  Shelf(std::filesystem::path root, const Catalog* catalog);

  /// By name, the latest last.
  std::vector<RunView> runs() const;
  /// Where the run of this name lies; nothing: there is none.
  std::optional<std::filesystem::path> find(const std::string& name) const;
  /// Nothing: there is no such run.
  std::shared_ptr<WatchedRun> watch(const std::string& name);

 private:
  const std::filesystem::path root_;
  const Catalog* catalog_;
  std::mutex mutex_{};
  std::map<std::string, std::shared_ptr<WatchedRun>> watched_{};
};

}  // namespace mayfly
