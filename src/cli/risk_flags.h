#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "cli/trace_flags.h"
#include "report/plan_json.h"

namespace mayfly::cli {

/// The weather of a plan: `--trace` or the usual one, and what goes with it.
struct RiskFlags {
  std::string trace{};
  std::optional<double> confidence{};
  std::string policy{};
  std::optional<int> windows{};
  std::optional<std::uint64_t> seed{};
  bool now = false;
  TraceFlags flags{};

  void add_to(CLI::App& verb);
  /// Nothing where plans are made as published, and nothing more is asked.
  Result<std::optional<PlanWeather>> load(const PlanRequest& request) const;
};

}  // namespace mayfly::cli
