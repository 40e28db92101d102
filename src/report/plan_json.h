#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "plan/planner.h"
#include "simulate/risk.h"

namespace mayfly {

/// The trace a plan is tried on, and how.
struct PlanWeather {
  Trace trace{};
  RiskOptions options{};

  /// What is left out of the answer.
  std::vector<std::string> notes(const Profile& profile, const PlanRequest& request) const;
};

/// What an answer of the planner is about; it outlives the answer.
struct PlanContext {
  const Profile& profile;
  const Catalog& catalog;
  const PlanRequest& request;
  Seconds took{};
  const PlanWeather* weather = nullptr;  ///< where a trace was given
};

/// docs/formats.md#plan
Json plan_json(const PlanContext& context, const Plan& plan);
Json plan_json(const PlanContext& context, const Infeasible& answer);

/// `key`, and `key_p10`, `key_p90` (before the unit) where a band is known: time_s, time_s_p10, time_s_p90.
void put(Json& json, const std::string& key, const Estimate& estimate);
Json breakdown_json(const Speed& speed);

}  // namespace mayfly
