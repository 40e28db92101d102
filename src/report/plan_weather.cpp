#include "report/plan_weather.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "simulate/usual_weather.h"

namespace mayfly {
namespace {

/// Nothing where a series stands for every type.
std::optional<std::set<std::string>> types_of(const Trace& trace) {
  std::set<std::string> types;
  for (const Series& series : trace.series) {
    if (series.type.empty()) return {};
    if (!series.changes.empty()) types.insert(series.type);
  }
  return types;
}

}  // namespace

std::vector<std::string> PlanWeather::notes(const Profile& profile, const PlanRequest& request) const {
  std::vector<std::string> notes;
  if (!profile.pipeline && profile.sync == Sync::bsp && profile.recovery == usual.recovery)
    notes.push_back(
        fmt::format("a change of profile {}'s cluster is taken to cost {}, as published for a process that starts anew "
                    "(recovery_s says otherwise)",
                    profile.name, format_duration(usual.recovery)));
  if (!trace) return notes;
  if (request.spot_types)
    notes.push_back(fmt::format("of the spot market only what trace {} covers: {}", trace->name,
                                fmt::join(*request.spot_types, ", ")));
  if (trace->observation == Observation::probe)
    notes.push_back(
        fmt::format("trace {} holds launch probes: what a request would have got, not what was kept", trace->name));
  return notes;
}

void promise_in(const PlanWeather& weather, std::optional<double> confidence, const Catalog& catalog, Profile& profile,
                PlanRequest& request) {
  constexpr double kUsual = 0.9;
  const double wanted = confidence.value_or(as_published(request) ? 0 : kUsual);
  if (wanted > 0 && (request.deadline || request.budget)) request.confidence = wanted;
  if (!as_published(request)) request.start = [boot = weather.usual.start](const InstanceType&) { return boot; };
  if (!profile.recovery) profile.recovery = usual_recovery(profile, weather.usual);
  if (!weather.trace) {
    request.risk = usual_risk(catalog, request, weather.usual, weather.options);
    return;
  }
  if (request.confidence) request.spot_types = types_of(*weather.trace);
  request.risk = risk_on(profile, catalog, request, *weather.trace, weather.options);
}

}  // namespace mayfly
