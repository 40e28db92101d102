#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "train/carrier.h"
#include "vault/depot.h"

namespace mayfly {

/// Of a machine that shares no files with the controller's computer: they come over the run's connection.
struct OwnFiles {
  std::filesystem::path folder{};  ///< this machine's alone; "job/..." in it is the folder of the job file
  std::filesystem::path cache{};   ///< of all machines of this computer
  Carrier::Options carrier{};
};

/// ~/.cache/mayfly/files, or what XDG_CACHE_HOME says.
std::filesystem::path usual_cache();

/// All that the job names, into the folder. What the cache holds by size and hash is not fetched again; what is
/// fetched goes there. Large files are links into it.
Result<void> fetch_files(const OwnFiles& own);

/// The terms as they are on this machine: its job file lies where the files are, which are fetched first. Without files
/// of its own all paths are those of the controller.
Result<Welcome> at_home(Welcome welcome, const std::optional<OwnFiles>& own);

/// Where the run's checkpoints are, as this machine gets at them.
Result<std::unique_ptr<Depot>> run_depot(const std::string& place, const Surroundings& around,
                                         const std::optional<OwnFiles>& own);

}  // namespace mayfly
