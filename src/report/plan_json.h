#pragma once

#include <optional>
#include <string>

#include "base/json.h"
#include "plan/planner.h"
#include "predict/memory.h"
#include "report/plan_weather.h"

namespace mayfly {

/// What an answer of the planner is about; it outlives the answer.
struct PlanContext {
  const Profile& profile;
  const Catalog& catalog;
  const PlanRequest& request;
  Seconds took{};
  const PlanWeather* weather = nullptr;  ///< where it was looked at
};

/// The chance of being in time as far as the prediction's own error goes; nothing without a deadline.
std::optional<double> chance_in_time(const PlanContext& context, const Plan& plan);

/// docs/formats.md#plan
Json plan_json(const PlanContext& context, const Plan& plan);
Json plan_json(const PlanContext& context, const Infeasible& answer);

/// `key`, and `key_p10`, `key_p90` (before the unit) where a band is known: time_s, time_s_p10, time_s_p90.
void put(Json& json, const std::string& key, const Estimate& estimate);
Json breakdown_json(const Speed& speed);
/// `[{type, market, zone, n, usd_per_hour}]`
Json lines_json(const std::vector<PlanLine>& lines);
Json memory_json(const MemoryFit& fit);

}  // namespace mayfly
