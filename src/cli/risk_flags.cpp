#include "cli/risk_flags.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace mayfly::cli {

void RiskFlags::add_to(CLI::App& verb) {
  verb.add_option("--trace", trace, "trace to try plans on: a file, or the name of a shipped one");
  verb.add_option("--confidence", confidence,
                  "plan for this chance of keeping the promise on the trace, between 0 and 1: 0.95");
  verb.add_option("--policy", policy, "of the replay: liveput (default), reactive, persist, ideal; pipelines: more");
  verb.add_option("--windows", windows, "of the trace to try each plan on (default 4000)")
      ->check(CLI::Range(10, 1'000'000));
  verb.add_option("--seed", seed, "of the windows and of the prediction's error (default 1)")
      ->check([](const std::string& seen) { return seen.starts_with('-') ? "want 0 or more" : ""; }, "");
  verb.add_flag("--now", now, "the trace ends now: windows that begin as it ends weigh most");
  flags.add_to(verb);
}

Result<std::optional<PlanWeather>> RiskFlags::load(PlanRequest& request) const {
  if (confidence && !(*confidence > 0 && *confidence < 1))
    return fail("--confidence {}: want a number between 0 and 1, for example 0.95", *confidence);
  if (trace.empty()) {
    const std::pair<const char*, bool> given[] = {{"--confidence", confidence.has_value()},
                                                  {"--policy", !policy.empty()},
                                                  {"--windows", windows.has_value()},
                                                  {"--now", now}};
    for (const auto& [flag, set] : given) {
      if (set) return fail("{} needs --trace", flag);
    }
    return std::nullopt;
  }
  if (confidence && !request.deadline && !request.budget)
    return fail("--confidence needs a promise: --deadline or --budget");
  auto loaded = flags.load(trace);
  if (!loaded) return unexpected(loaded.error());
  PlanWeather weather{.trace = *std::move(loaded)};
  if (!policy.empty()) {
    const auto named = policy_named(policy);
    if (!named || *named == PolicyName::on_demand || *named == PolicyName::deadline)
      return fail("--policy '{}': want checkpoint, redundant, template, reactive, persist, liveput or ideal{}", policy,
                  named ? "" : did_you_mean(policy, policy_names()));
    weather.options.policy = *named;
  }
  weather.options.windows = windows.value_or(weather.options.windows);
  weather.options.seed = seed.value_or(weather.options.seed);
  if (now) weather.options.now = weather.trace.duration;
  request.confidence = confidence;
  const auto& all = weather.trace.series;
  const bool typed = std::none_of(all.begin(), all.end(), [](const Series& series) { return series.type.empty(); });
  if (confidence && typed) {
    request.spot_types.emplace();
    for (const Series& series : all) {
      if (!series.changes.empty()) request.spot_types->insert(series.type);
    }
  }
  return weather;
}

}  // namespace mayfly::cli
