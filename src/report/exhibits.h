#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "cloud/catalog.h"

namespace mayfly {

/// What a report is made of, `mayfly-report/1` (docs/formats.md#report): the runs and journals in the order given, and
/// one plan, replay and profile at most. Each path is the folder of a run, a journal, or what `plan`, `replay --json`
/// or `profile --stalls` wrote; which of them, its contents say. The plan of the first run comes with it.
Result<Json> load_exhibits(const std::vector<std::filesystem::path>& paths, const Catalog* catalog);

}  // namespace mayfly
