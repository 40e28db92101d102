#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "cli/trace_flags.h"
#include "report/plan_json.h"

namespace mayfly::cli {

/// `--trace` of plan and what goes with it.
struct RiskFlags {
  std::string trace{};
  std::optional<double> confidence{};
  std::string policy{};
  std::optional<int> windows{};
  std::optional<std::uint64_t> seed{};
  bool now = false;
  TraceFlags flags{};

  void add_to(CLI::App& verb);
  /// Nothing without --trace. Sets the request's confidence, and with it keeps to spot types that the trace covers.
  Result<std::optional<PlanWeather>> load(PlanRequest& request) const;
};

}  // namespace mayfly::cli
