#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cloud/spot_weather.h"
#include "simulate/risk.h"

namespace mayfly {

/// The weather a plan is tried in, and how.
struct PlanWeather {
  std::optional<Trace> trace{};  ///< nothing: the usual weather
  WeatherTable usual{};
  RiskOptions options{};

  /// What is left out of the answer.
  std::vector<std::string> notes(const Profile& profile, const PlanRequest& request) const;
};

/// Makes the request promise something in this weather: machines start, training stands still when the cluster changes,
/// and deadline and budget are kept with the confidence, 0.9 unless told; 0: their chance is told, whatever it is. On a
/// trace with a confidence, spot machines are only of types that it covers. Plans as published promise the middle
/// unless told. All arguments but the confidence must outlive the request.
void promise_in(const PlanWeather& weather, std::optional<double> confidence, const Catalog& catalog, Profile& profile,
                PlanRequest& request);

}  // namespace mayfly
