#pragma once

#include "cloud/spot_weather.h"
#include "simulate/risk.h"

namespace mayfly {

/// What make_plan asks about a plan where no trace is given: its spot machines are lost and come back as published
/// figures of such machines tell, and how wide these are counts with the prediction's own error. All arguments must
/// outlive the result. docs/models.md#usual-weather
RiskOfPlan usual_risk(const Catalog& catalog, const PlanRequest& request, const WeatherTable& table,
                      const RiskOptions& options);

/// How long training stands still when the cluster changes, where the profile does not say: only who waits for others
/// does.
Seconds usual_recovery(const Profile& profile, const WeatherTable& table);

/// Whether the request is answered as published: by a model or a search that is not mayfly's own. Such plans promise
/// the middle, and know no start and no weather unless a confidence is asked for.
bool as_published(const PlanRequest& request);

}  // namespace mayfly
