#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/json.h"
#include "cloud/catalog.h"
#include "report/chronicle.h"
#include "status/folder.h"

namespace mayfly {

/// What is known of a run besides its journal; all of it may be missing.
struct ViewContext {
  std::string name{};
  RunLife life = RunLife::none;  ///< none: a bare journal
  std::optional<RunStatus> status{};
  Json plan{};                     ///< null: none
  Json summary{};                  ///< null: none
  std::optional<double> epochs{};  ///< of the objective, as are steps
  std::optional<double> steps{};
  const Catalog* catalog = nullptr;  ///< for what the same hours cost on demand
};

/// Of a run's folder: what lies beside its journal. A file that is not there or cannot be read is left out.
ViewContext load_view_context(const std::filesystem::path& directory);

/// docs/formats.md#view
Json view_json(const Chronicle& chronicle, const ViewContext& context);

}  // namespace mayfly
