#pragma once

#include <cstdint>
#include <vector>

#include "simulate/course.h"

namespace mayfly {

struct RiskOptions {
  int windows = 4000;  ///< half of them real stretches of the trace, half blocks of it put together anew
  std::uint64_t seed = 1;
  PolicyName policy = PolicyName::liveput;
  /// Only what was before this moment is known, and windows that begin as this moment looks weigh most. Nothing: the
  /// start may be at any time, and all of the trace counts alike.
  std::optional<Seconds> now{};
};

/// One job to be done on a course.
struct RiskQuestion {
  double work = 1;  ///< in the course's unit
  std::optional<Seconds> deadline{};
  std::optional<Usd> budget{};
  Seconds planned{};       ///< how long it takes with every machine there
  double relative_sd = 0;  ///< of that prediction, log-normal
};

/// How one window ended.
struct WindowRun {
  double time = 0;
  double cost = 0;
  bool finished = false;  ///< false: given up after ten times the deadline
};

/// Every window's run, each with its own draw of the prediction's error. Empty where less is known than the shortest
/// block.
std::vector<WindowRun> window_runs(const Course& course, const RiskQuestion& question, const RiskOptions& options);

/// Windows overlap, so the band around the probability counts only as many as fit into the trace side by side.
Risk assess(const Course& course, const RiskQuestion& question, const RiskOptions& options);

/// What make_plan asks about a plan: its cluster on this trace. All arguments must outlive the result.
RiskOfPlan risk_on(const Profile& profile, const Catalog& catalog, const PlanRequest& request, const Trace& trace,
                   const RiskOptions& options);

}  // namespace mayfly
