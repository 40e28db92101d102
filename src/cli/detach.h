#pragma once

#include <filesystem>
#include <functional>

namespace mayfly::cli {

/// How a run was sent into the background.
struct Detached {
  bool stands = false;  ///< it goes on without us; otherwise it has ended already
  int code = 0;         ///< exit code of one that has ended
  int pid = 0;
};

struct DetachOptions {
  std::filesystem::path directory{};  ///< of the run; its output goes to run.log in there
  bool waits = false;                 ///< machines may come late, so it stands before a worker trains
};

/// Does `work`, which drives the run, in a process of its own without a terminal. Returns when the run trains, or has
/// ended: what it had to say is then printed on standard error.
Detached detach(const DetachOptions& options, const std::function<int()>& work);

}  // namespace mayfly::cli
