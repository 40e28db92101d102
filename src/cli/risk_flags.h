#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "cli/trace_flags.h"
#include "simulate/risk.h"

namespace mayfly::cli {

/// The trace a plan is tried on, and how.
struct PlanWeather {
  Trace trace{};
  RiskOptions options{};

  /// What the profile leaves out of the answer.
  std::vector<std::string> notes(const Profile& profile) const;
};

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
  /// Nothing without --trace. Sets the request's confidence.
  Result<std::optional<PlanWeather>> load(PlanRequest& request) const;
};

}  // namespace mayfly::cli
