#include "backtest/backtest_json.h"

#include <fmt/format.h>

#include <map>

#include "base/text.h"
#include "report/plan_json.h"

namespace mayfly {

std::string machines_of(const PlanOption& option) {
  if (option.fleet)
    return fmt::format("{} x {} of {} MiB", option.fleet->functions, option.platform, option.fleet->memory_mib);
  std::string text;
  for (const PlanLine& line : option.cluster)
    text += fmt::format("{}{} x {} {}", text.empty() ? "" : " + ", line.count, line.type, name(line.market));
  for (const PlanLine& line : option.servers) text += fmt::format(", {} x {}", line.count, line.type);
  return text;
}

std::string when(const Backtest& test, const Start& start) {
  const History& history = test.histories[start.history];
  if (history.start_unix) return format_time(*history.start_unix + start.time);
  return "+" + format_duration(Seconds(start.time));
}

namespace {

Json calibration_json(const Calibration& bin) {
  return {{"promises", bin.promises}, {"days", bin.days},    {"promised", bin.promised},
          {"kept", bin.kept},         {"kept_low", bin.low}, {"kept_high", bin.high}};
}

Json bins_json(const std::vector<Calibration>& bins) {
  Json json = Json::array();
  for (const Calibration& bin : bins) {
    Json row{{"from", bin.from}, {"to", bin.to}};
    row.update(calibration_json(bin));
    json.push_back(std::move(row));
  }
  return json;
}

Json spent_json(const Spent& spent) {
  return {{"rule", name(spent.rule)},
          {"starts", spent.starts},
          {"kept", spent.kept},
          {"finished", spent.finished},
          {"restarts_mean", spent.restarts},
          {"cost_usd_mean", or_null(spent.mean)},
          {"cost_usd_p10", or_null(spent.p10)},
          {"cost_usd_p50", or_null(spent.p50)},
          {"cost_usd_p90", or_null(spent.p90)}};
}

/// Plans that some start chose, and the one that is on demand alone.
Json plans_json(const History& history, const std::map<std::size_t, int>& chosen) {
  Json plans = Json::array();
  for (const auto& [at, starts] : chosen) {
    const PlanOption& option = history.field.entrants[at].option;
    plans.push_back({{"plan", at},
                     {"starts", starts},
                     {"machines", machines_of(option)},
                     {"cluster", lines_json(option.cluster)},
                     {"servers", lines_json(option.servers)},
                     {"time_s", option.time},
                     {"cost_usd", option.cost}});
  }
  return plans;
}

Json traces_json(const Backtest& test) {
  Json traces = Json::array();
  for (std::size_t h = 0; h < test.histories.size(); ++h) {
    const History& history = test.histories[h];
    std::map<std::size_t, int> chosen;
    int starts = 0;
    int planned = 0;
    for (const Start& start : test.starts) {
      if (start.history != h) continue;
      ++starts;
      planned += start.entrant ? 1 : 0;
      if (start.entrant) ++chosen[*start.entrant];
    }
    Json on_demand;
    if (history.on_demand) on_demand = machines_of(history.rented.entrants[*history.on_demand].option);
    traces.push_back({{"name", history.name},
                      {"start", history.start_unix ? Json(format_time(*history.start_unix)) : Json()},
                      {"duration_s", history.duration.count()},
                      {"starts", starts},
                      {"starts_with_plan", planned},
                      {"plans_looked_at", history.field.entrants.size()},
                      {"on_demand", on_demand},
                      {"plans", plans_json(history, chosen)}});
  }
  return traces;
}

Json start_json(const Backtest& test, const Start& start) {
  Json json{{"trace", start.history},
            {"start", when(test, start)},
            {"t_s", start.time},
            {"plan", start.entrant ? Json(*start.entrant) : Json()},
            {"promised", start.promised},
            {"kept", start.entrant ? Json(start.kept) : Json()},
            {"work_factor", start.entrant ? Json(start.error) : Json()},
            {"rules", Json::array()}};
  for (const Rule rule : kRules) {
    const auto at = static_cast<std::size_t>(rule);
    if (const auto& run = start.runs[at])
      json["rules"].push_back({{"rule", name(rule)},
                               {"kept", start.in_time[at]},
                               {"finished", run->finished},
                               {"time_s", run->time},
                               {"cost_usd", run->cost},
                               {"restarts", run->restarts}});
  }
  return json;
}

}  // namespace

Json backtest_json(const BacktestContext& context) {
  const auto& [job, target, test, summary, options, took] = context;
  Json json{{"format", "mayfly-backtest/1"},
            {"job", job},
            {"target", target},
            {"deadline_s", test.deadline.count()},
            {"confidence", options.confidence},
            {"policy", name(options.policy)},
            {"seed", options.seed},
            {"restart_s", options.figures.restart.count()},
            {"checkpoint_every_s", options.figures.checkpoint_every.count()},
            {"starts", summary.starts},
            {"starts_with_plan", summary.planned},
            {"starts_compared", summary.compared},
            {"promises", summary.promises ? calibration_json(*summary.promises) : Json()},
            {"by_promised", bins_json(summary.by_chance)},
            {"all_plans_by_promised", bins_json(summary.all_by_chance)},
            {"rules", Json::array()},
            {"traces", traces_json(test)},
            {"runs", Json::array()},
            {"time_s", took.count()}};
  for (const Spent& spent : summary.spent) json["rules"].push_back(spent_json(spent));
  for (const Start& start : test.starts) json["runs"].push_back(start_json(test, start));
  return json;
}

}  // namespace mayfly
