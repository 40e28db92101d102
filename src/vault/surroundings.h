#pragma once

#include <functional>
#include <optional>
#include <string>

namespace mayfly {

/// What a store needs to know of the process that asks: told by the program's door, which alone reads the environment.
struct Surroundings {
  std::function<std::optional<std::string>(const std::string& name)> variable{};  ///< of the environment

  /// Absent and empty are the same.
  std::string value(const std::string& name) const;
};

}  // namespace mayfly
