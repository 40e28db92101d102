#pragma once

#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "status/status.h"

// A run's folder, seen from outside: does a process drive it, and how did it end. docs/formats.md#run
namespace mayfly {

/// The right to drive a run, held from before its controller starts until it and the process that starts it again are
/// both gone: a lock on DIR/run.lock, which children inherit unless they become another program. So no process takes
/// over in the moment between two controllers, and the kernel gives it back however they end.
class RunLock {
 public:
  /// Only in a folder of this user's own making, see check_own_folder(). Waits up to two seconds for those who are just
  /// ending; an error names the process that holds it already.
  static Result<RunLock> take(const std::filesystem::path& directory);

 private:
  explicit RunLock(OpenFile file) : file_(std::move(file)) {}
  OpenFile file_;
};

/// True while a process holds the lock; asking does not take it.
bool driven(const std::filesystem::path& directory);

enum class RunLife {
  none,      ///< no run here
  starting,  ///< driven, but nothing was heard of it yet
  running,
  finished,  ///< reached its target or spent its budget
  stopped,   ///< saved and ended on a user's word
  failed,    ///< ended by itself with an error
  lost,      ///< the process that drove it was killed or the machine went down
};
std::string_view name(RunLife life);

/// What can be said of a run at this moment.
struct RunView {
  std::filesystem::path directory{};
  RunLife life = RunLife::none;
  std::optional<RunStatus> status{};
};
RunView view_run(const std::filesystem::path& directory);

/// The status document with `directory` and `state` in front.
Json run_json(const RunView& view);
/// What its folder is called, however its path is written.
std::string run_name(const std::filesystem::path& directory);

/// Of every run in a folder, by name; what is no run is passed over.
Result<std::vector<RunView>> view_runs(const std::filesystem::path& folder);

}  // namespace mayfly
