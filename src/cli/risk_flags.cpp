#include "cli/risk_flags.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "cli/command.h"
#include "simulate/usual_weather.h"

namespace mayfly::cli {

void RiskFlags::add_to(CLI::App& verb) {
  verb.add_option("--trace", trace,
                  "trace to try plans on: a file, or the name of a shipped one (default: the usual weather of "
                  "each machine, as published)");
  verb.add_option("--confidence", confidence,
                  "plan for this chance of keeping the promise, below 1: 0.95 (default 0.9; 0: tell the chance alone)");
  verb.add_option("--policy", policy, "of the replay: liveput (default), reactive, persist, ideal; pipelines: more");
  verb.add_option("--windows", windows, "of weather to try each plan on (default 4000)")
      ->check(CLI::Range(10, 1'000'000));
  verb.add_option("--seed", seed, "of the windows and of the prediction's error (default 1)")
      ->check([](const std::string& seen) { return seen.starts_with('-') ? "want 0 or more" : ""; }, "");
  verb.add_flag("--now", now, "the trace ends now: windows that begin as it ends weigh most");
  flags.add_to(verb);
}

Result<std::optional<PlanWeather>> RiskFlags::load(const PlanRequest& request) const {
  if (confidence && !(*confidence >= 0 && *confidence < 1))
    return fail("--confidence {}: want a number from 0 to below 1, for example 0.95", *confidence);
  if (trace.empty()) {
    for (const auto& [flag, set] : {std::pair("--policy", !policy.empty()), std::pair("--now", now)}) {
      if (set) return fail("{} needs --trace", flag);
    }
  }
  if (confidence.value_or(0) > 0 && !request.deadline && !request.budget)
    return fail("--confidence needs a promise: --deadline or --budget");
  if (trace.empty() && !confidence && as_published(request)) return std::nullopt;
  auto usual = shipped_weather();
  if (!usual) return unexpected(usual.error());
  PlanWeather weather{.usual = *std::move(usual)};
  weather.options.windows = windows.value_or(weather.options.windows);
  weather.options.seed = seed.value_or(weather.options.seed);
  if (trace.empty()) return weather;
  auto loaded = flags.load(trace);
  if (!loaded) return unexpected(loaded.error());
  weather.trace = *std::move(loaded);
  if (!policy.empty()) {
    const auto named = policy_named(policy);
    if (!named || *named == PolicyName::on_demand || *named == PolicyName::deadline)
      return fail("--policy '{}': want checkpoint, redundant, template, reactive, persist, liveput or ideal{}", policy,
                  named ? "" : did_you_mean(policy, policy_names()));
    weather.options.policy = *named;
  }
  if (now) weather.options.now = weather.trace->duration;
  return weather;
}

}  // namespace mayfly::cli
