#pragma once

#include <string>
#include <vector>

#include "status/folder.h"

namespace mayfly::cli {

/// A folder without a run in it is an error.
Result<RunView> view_known_run(const std::string& directory);

/// One line a run.
std::string runs_text(const std::vector<RunView>& views);

/// All there is to know of one, and what can be done with it.
std::string run_text(const RunView& view);

}  // namespace mayfly::cli
