#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace mayfly {

/// What workers run in place of mayfly-train: the job's own program. docs/python.md
struct ScriptCommand {
  std::string text{};                 ///< for the shell
  std::filesystem::path directory{};  ///< to run in
  std::vector<std::pair<std::string, std::string>> environment{};
};

}  // namespace mayfly
