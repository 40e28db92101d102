#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "job/profile.h"

namespace mayfly::cli {

/// What a step is: flags of predict, plan and replay.
struct StepFlags {
  std::string sync{};
  std::optional<double> batch{};
  bool scale = false;
  std::optional<double> most{};

  void add_to(CLI::App& verb);
  /// Over what the profile says.
  Result<void> apply(Profile& profile) const;
};

}  // namespace mayfly::cli
