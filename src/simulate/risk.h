#pragma once

#include <cstdint>
#include <vector>

#include "simulate/course.h"
#include "simulate/past.h"

namespace mayfly {

struct RiskOptions {
  int windows = 4000;  ///< half of them real stretches of the trace, half blocks of it put together anew
  std::uint64_t seed = 1;
  PolicyName policy = PolicyName::liveput;
  /// Only what was before this moment is known, and windows that begin as this moment looks weigh most. Nothing: the
  /// start may be at any time, and all of the trace counts alike.
  std::optional<Seconds> now{};
  SpotPrices prices = SpotPrices::around_the_plan;
  /// The brain's policy reckons with as many machines as the plan takes. Else with the most that the trace ever has:
  /// what only hindsight knows where the trace goes on after the moment that is asked about.
  bool all_may_come = false;
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

/// What these runs say; so many of them count as independent.
Risk risk_of(const std::vector<WindowRun>& runs, const RiskQuestion& question, double independent);
/// Fewer windows for a glance.
RiskOptions with_care(RiskOptions options, Care care);
/// Functions are always to be had: only the prediction's own error counts.
Risk steady_risk(const PlanOption& option, RiskQuestion question, RiskOptions options);

/// A plan's course over the whole trace, and what is asked of it once its machines train.
struct PlannedCourse {
  Course course;
  RiskQuestion question{};
  Seconds lead{};  ///< before they do
  Usd paid{};      ///< for that
};
/// Of functions there is no problem and no candidate. An error: the trace does not cover this plan.
Result<PlannedCourse> planned_course(const Profile& profile, const Catalog& catalog, const PlanRequest& request,
                                     const Trace& trace, const RiskOptions& options, const PlanOption& option,
                                     const Problem* problem, const Candidate* candidate);

/// What make_plan asks about a plan: its cluster on this trace. All arguments must outlive the result.
RiskOfPlan risk_on(const Profile& profile, const Catalog& catalog, const PlanRequest& request, const Trace& trace,
                   const RiskOptions& options);

}  // namespace mayfly
