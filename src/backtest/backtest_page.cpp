#include "backtest/backtest_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "report/svg.h"

namespace mayfly {
namespace {

constexpr std::string_view kStyle =
    "body{font:16px/1.5 system-ui,sans-serif;color:#222;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse;margin:1rem 0}td,th{padding:.25rem .75rem;border-bottom:1px solid #ddd;"
    "text-align:right}td:first-child,th:first-child{text-align:left}svg{max-width:100%;height:auto}"
    "@media(prefers-color-scheme:dark){body{background:#1b1b1b;color:#ddd}td,th{border-color:#444}}";

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }
std::string money(const std::optional<double>& usd) { return usd ? fmt::format("{:.2f}", *usd) : "-"; }

std::string row(const std::vector<std::string>& cells, const char* tag) {
  std::string text = "<tr>";
  for (const std::string& cell : cells) text += fmt::format("<{0}>{1}</{0}>", tag, xml_text(cell));
  return text + "</tr>\n";
}

/// Means with a whisker each, the diagonal, and the intervals.
std::string calibration_chart(const Summary& summary) {
  Chart chart{.title = "Promised against kept",
              .description =
                  "Share of jobs done in time by the chance that was stated, with intervals of 95 % in which "
                  "days are drawn.",
              .x = {.label = "chance stated", .scale = AxisScale::percent},
              .y = {.label = "kept", .scale = AxisScale::percent}};
  chart.lines.push_back(
      {.name = "as promised", .curve = {{0, 1}, {0, 1}}, .pen = {.colour = "#888888", .width = 1.5, .dashes = "6 4"}});
  const auto add = [&](const std::vector<Calibration>& bins, const char* name, const char* colour, Mark mark) {
    Curve means;
    for (const Calibration& bin : bins) {
      means.add(bin.promised, bin.kept);
      chart.lines.push_back(
          {.curve = {{bin.promised, bin.promised}, {bin.low, bin.high}}, .pen = {.colour = colour, .width = 1.5}});
    }
    if (!means.empty()) chart.points.push_back({.name = name, .curve = means, .mark = mark, .colour = colour});
  };
  add(summary.all_by_chance, "every plan looked at", palette(0), Mark::ring);
  add(summary.by_chance, "plans chosen", palette(1), Mark::disc);
  return svg(chart);
}

std::string money_chart(const Summary& summary) {
  BarChart chart{.title = fmt::format("What a job costs, mean of {} starts", summary.compared),
                 .description = "Mean cost by rule, with the range of 8 of 10 starts.",
                 .x = {.label = "USD", .scale = AxisScale::usd},
                 .parts = {{.name = "cost", .colour = palette(0)}},
                 .legend = false};
  for (const Spent& spent : summary.spent) {
    if (!spent.mean) continue;
    chart.rows.push_back({.label = std::string(name(spent.rule)),
                          .values = {*spent.mean},
                          .note = money(spent.mean) + " USD",
                          .low = spent.p10,
                          .high = spent.p90});
  }
  return svg(chart);
}

std::string distribution_chart(const Summary& summary) {
  Chart chart{.title = "How often a job costs at most so much",
              .description = "Cumulative distribution of the cost by rule.",
              .x = {.label = "USD", .scale = AxisScale::usd},
              .y = {.label = "share of starts", .scale = AxisScale::percent}};
  for (std::size_t i = 0; i < summary.spent.size(); ++i) {
    const Spent& spent = summary.spent[i];
    if (spent.costs.empty()) continue;
    Curve curve{{spent.costs.front()}, {0}};
    for (std::size_t k = 0; k < spent.costs.size(); ++k)
      curve.add(spent.costs[k], static_cast<double>(k + 1) / static_cast<double>(spent.costs.size()));
    chart.lines.push_back({.name = std::string(name(spent.rule)),
                           .curve = std::move(curve),
                           .pen = {.colour = palette(i), .width = 2.5, .dashes = dashes(i)}});
  }
  return svg(chart);
}

/// One picture a trace: a mark a start, at the chance that was stated.
std::string starts_chart(const Backtest& test, std::size_t history) {
  const History& of = test.histories[history];
  Chart chart{.title = "Starts on " + of.name,
              .description = "Each start at the chance stated, by what came of it.",
              .x = {.label = of.start_unix ? "time since " + format_time(*of.start_unix) : "time of the trace",
                    .scale = AxisScale::time},
              .y = {.label = "chance stated", .scale = AxisScale::percent}};
  ChartPoints kept{.name = "kept", .mark = Mark::disc, .colour = palette(0), .size = 2.5};
  ChartPoints missed{.name = "missed", .mark = Mark::diamond, .colour = palette(1), .size = 4};
  ChartPoints none{.name = "no plan: the surest", .mark = Mark::ring, .colour = "#888888", .size = 2.5};
  for (const Start& start : test.starts) {
    if (start.history != history) continue;
    ChartPoints& into = !start.entrant ? none : start.kept ? kept : missed;
    into.curve.add(start.time, start.promised);
  }
  for (ChartPoints* points : {&none, &kept, &missed}) {
    if (!points->curve.empty()) chart.points.push_back(std::move(*points));
  }
  return svg(chart);
}

std::string tables(const Summary& summary) {
  std::string text =
      "<h2>By chance stated</h2>\n<table>\n" + row({"stated", "promises", "days", "promised", "kept", "95 %"}, "th");
  const auto add = [&](const Calibration& bin, const std::string& label) {
    text += row({label, std::to_string(bin.promises), std::to_string(bin.days), percent(bin.promised),
                 percent(bin.kept), fmt::format("{} .. {}", percent(bin.low), percent(bin.high))},
                "td");
  };
  for (const Calibration& bin : summary.by_chance)
    add(bin, fmt::format("{:.0f} .. {:.0f} %", 100 * bin.from, 100 * bin.to));
  if (summary.promises) add(*summary.promises, "all");
  text += "</table>\n<h2>Money by rule</h2>\n<table>\n" +
          row({"rule", "in time", "mean USD", "p10", "p50", "p90", "restarts"}, "th");
  for (const Spent& spent : summary.spent)
    text +=
        row({std::string(name(spent.rule)), percent(spent.kept), money(spent.mean), money(spent.p10), money(spent.p50),
             money(spent.p90), spent.rule == Rule::mayfly ? "-" : fmt::format("{:.1f}", spent.restarts)},
            "td");
  return text + "</table>\n";
}

}  // namespace

std::string backtest_html(const BacktestContext& context) {
  const Summary& summary = context.summary;
  const std::string head =
      fmt::format("Backtest of {}, {} by {}", context.job, context.target, format_duration(context.test.deadline));
  std::string text = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width\">\n<title>{0}</title><style>{1}</style></head>\n<body>\n<h1>{0}</h1>\n",
      xml_text(head), kStyle);
  text +=
      fmt::format("<p>{} starts; {} have a plan with a chance of {:g} % by what was known then, {} have none.{}</p>\n",
                  summary.starts, summary.planned, 100 * context.options.confidence, summary.starts - summary.planned,
                  summary.promises ? fmt::format(" Promised {} on average, kept {} (95 %: {} .. {}).",
                                                 percent(summary.promises->promised), percent(summary.promises->kept),
                                                 percent(summary.promises->low), percent(summary.promises->high))
                                   : "");
  text += tables(summary) + calibration_chart(summary);
  if (summary.compared > 0) text += money_chart(summary) + distribution_chart(summary);
  constexpr std::size_t kMostTraces = 12;
  for (std::size_t h = 0; h < std::min(kMostTraces, context.test.histories.size()); ++h)
    text += starts_chart(context.test, h);
  return text + "</body></html>\n";
}

}  // namespace mayfly
