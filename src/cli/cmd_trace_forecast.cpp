#include <fmt/core.h>

#include <algorithm>
#include <memory>

#include "base/table.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/trace_flags.h"
#include "trace/forecast.h"
#include "trace/weather.h"

namespace mayfly::cli {
namespace {

/// Errors are taken over no more than this many of the last intervals: a second's work.
constexpr std::size_t kMostJudged = 10000;

struct ForecastFlags {
  TraceFlags flags{};
  std::string file{};
  std::string method = "all";
  int horizon = 12;
  std::string interval{};
  std::uint64_t seed = 1;
  bool json = false;
};

struct Row {
  std::string method{};
  std::vector<double> counts{};
  ForecastError error{};
};

/// The count that is not exceeded with this probability, interval by interval.
std::vector<int> quantiles(const std::vector<std::vector<double>>& likely, double probability) {
  std::vector<int> counts;
  for (const auto& interval : likely) {
    double below = interval[0];
    int count = 0;
    while (below < probability && count + 1 < static_cast<int>(interval.size()))
      below += interval[static_cast<std::size_t>(++count)];
    counts.push_back(count);
  }
  return counts;
}

/// How the counts are spread, as learned from the whole trace.
std::vector<std::vector<double>> spread(const std::vector<Interval>& past, int most, int horizon) {
  Weather weather(most);
  for (std::size_t i = 1; i < past.size(); ++i)
    weather.observe(past[i - 1].available, {past[i].added, past[i].removed});
  return weather.distribution(past.back().available, horizon);
}

int forecast_trace(const ForecastFlags& options) {
  const auto trace = options.flags.load(options.file);
  if (!trace) return bad_input(trace.error());
  const auto interval = options.interval.empty() ? Result<Seconds>(trace->gap) : parse_duration(options.interval);
  if (!interval) return bad_input({fmt::format("--interval: {}", interval.error().message)});
  if (interval->count() < 1) return bad_input({fmt::format("--interval {} s: want at least 1s", interval->count())});
  const Series all = merged(*trace);
  if (all.changes.empty()) return bad_input({fmt::format("{}: no counts to forecast", options.file)});
  if (trace->duration / *interval > 1e7)
    return bad_input({fmt::format("{}: {:.3g} intervals of {}: want at most 10^7 (see --interval)", options.file,
                                  trace->duration / *interval, format_duration(*interval))});
  auto past = intervals(all, *interval, trace->duration);
  if (past.size() > kMostJudged) {
    note(fmt::format("errors over the last {} of {} intervals", kMostJudged, past.size()));
    past.erase(past.begin(), past.end() - static_cast<std::ptrdiff_t>(kMostJudged));
  }
  int most = 0;
  for (const Change& change : all.changes) most = std::max(most, change.available);
  const int history = history_length(options.horizon);

  std::vector<Row> rows;
  for (const NamedForecast& method : point_forecasts({.history = history, .most = most, .seed = options.seed})) {
    if (options.method != "all" && options.method != method.name) continue;
    Row row{.method = method.name, .error = rolling_error(method.next, past, options.horizon, history)};
    row.counts = method.next(past, options.horizon);
    rows.push_back(std::move(row));
  }
  if (options.json) {
    Json methods = Json::array();
    for (const Row& row : rows) {
      const bool known = row.error.origins > 0;
      methods.push_back({{"method", row.method},
                         {"available", row.counts},
                         {"origins", row.error.origins},
                         {"mae", known ? Json(row.error.mae) : Json()},
                         {"normalised_l1", known ? Json(row.error.normalised_l1) : Json()}});
      if (row.method == "weather") {
        const auto likely = spread(past, most, options.horizon);
        methods.back()["available_p10"] = quantiles(likely, 0.1);
        methods.back()["available_p90"] = quantiles(likely, 0.9);
      }
    }
    print_json({{"trace", trace->name},
                {"interval_s", interval->count()},
                {"horizon", options.horizon},
                {"history", history},
                {"available", past.back().available},
                {"methods", methods}});
    return kDone;
  }
  fmt::print("{}: {} machines at the end; the next {} intervals of {}, each method fitted on the last {}\n",
             trace->name, past.back().available, options.horizon, format_duration(*interval), history);
  Table table({"METHOD", ">MAE", ">NORM. L1", ">ORIGINS", "FORECAST"});
  for (const Row& row : rows) {
    const bool known = row.error.origins > 0;
    table.add({row.method, known ? fmt::format("{:.3f}", row.error.mae) : "-",
               known ? fmt::format("{:.4f}", row.error.normalised_l1) : "-", fmt::format("{}", row.error.origins),
               fmt::format("{:g}", fmt::join(row.counts, " "))});
  }
  fmt::print("{}", table.text());
  if (!rows.empty() && rows.back().method == "weather") {
    const auto likely = spread(past, most, options.horizon);
    fmt::print("weather, 8 of 10 between {} and {}\n", fmt::join(quantiles(likely, 0.1), " "),
               fmt::join(quantiles(likely, 0.9), " "));
  }
  return kDone;
}

}  // namespace

void add_trace_forecast(CLI::App& verb, int& code) {
  auto options = std::make_shared<ForecastFlags>();
  auto* action = verb.add_subcommand(
      "forecast", "how many machines the next intervals will have, and how far off each method was on this trace");
  std::vector<std::string> methods{"all"};
  for (const NamedForecast& method : point_forecasts({})) methods.push_back(method.name);
  action->add_option("file", options->file, "the trace: a file, or the name of a shipped one")->required();
  action->add_option("--method", options->method, fmt::format("{}", fmt::join(methods, ", ")))
      ->capture_default_str()
      ->check(CLI::IsMember(methods));
  action->add_option("--horizon", options->horizon, "intervals ahead")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  action->add_option("--interval", options->interval, "length of an interval (default: the trace's gap)");
  action->add_option("--seed", options->seed, "of Parcae's draws")
      ->capture_default_str()
      ->check([](const std::string& seen) { return seen.starts_with('-') ? "want 0 or more" : ""; }, "");
  options->flags.add_to(*action);
  action->add_flag("--json", options->json, "print one JSON document");
  action->callback([options, &code] { code = forecast_trace(*options); });
}

}  // namespace mayfly::cli
