#include "report/picture_answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace mayfly {
namespace {

struct Use {
  const char* key;
  const char* colour;
};
// What is good is blue and green, what is lost is red, what was not used is grey.
constexpr std::array kUses{Use{"useful", "#009e73"}, Use{"redundant", "#56b4e9"}, Use{"reconfigure", "#e69f00"},
                           Use{"lost", "#d55e00"}, Use{"idle", "#c4c4c4"}};

Curve options_curve(const Json& options) {
  Curve curve;
  for (const Json& option : options) {
    const Fields fields(option);
    const auto time = finite(fields, "time_s"), cost = finite(fields, "cost_usd");
    if (time && cost) curve.add(*time, *cost);
  }
  return curve;
}

/// The chosen option with a cross of its bands.
void add_chosen(Chart& chart, const Fields& plan) {
  const auto time = finite(plan, "time_s"), cost = finite(plan, "cost_usd");
  if (!time || !cost) return;
  const char* colour = palette(1);
  const Pen pen{.colour = colour, .width = 1.5};
  if (const auto early = finite(plan, "time_s_p10"), late = finite(plan, "time_s_p90"); early && late)
    chart.lines.push_back({.curve = {{*early, *late}, {*cost, *cost}}, .pen = pen});
  if (const auto low = finite(plan, "cost_usd_p10"), high = finite(plan, "cost_usd_p90"); low && high)
    chart.lines.push_back({.curve = {{*time, *time}, {*low, *high}}, .pen = pen});
  const std::string what = option_text(plan);
  chart.points.push_back({.name = what.empty() ? "chosen" : "chosen: " + what,
                          .curve = {{*time}, {*cost}},
                          .mark = Mark::diamond,
                          .colour = colour,
                          .size = 6.5});
}

/// Policies keep their colour from picture to picture, whether or not one has the curve.
std::vector<ChartLine> policy_lines(const Fields& replay, const char* key, const char* y) {
  std::vector<ChartLine> lines;
  std::size_t n = 0;
  for (const Json& policy : replay.list("policies")) {
    const Fields fields(policy);
    Curve curve = curve_of(fields.object(key), "t_s", y);
    if (!curve.empty())
      lines.push_back({.name = fields.text("policy"),
                       .curve = std::move(curve),
                       .pen = {.colour = palette(n), .width = 2.5, .dashes = dashes(n)}});
    ++n;
  }
  return lines;
}

std::string replay_title(const char* what, const Fields& replay) {
  const std::string profile = replay.text("profile"), trace = replay.object("trace").text("name");
  std::string title = what;
  if (!profile.empty()) title += " of " + profile;
  return trace.empty() ? title : title + " on " + trace;
}

std::string percent_text(double share) { return fmt::format("{:.0f}%", 100 * std::max(0.0, share)); }

BarChart::Row stall_row(const std::string& label, const Fields& stall, double step) {
  const double time = finite(stall, "seconds").value_or(0);
  return {.label = label,
          .values = {0, time},
          .note = percent_text(time / step),
          .low = finite(stall, "seconds_low"),
          .high = finite(stall, "seconds_high")};
}

}  // namespace

std::vector<BarChart::Row> machine_time_rows(const Json& views_or_policies) {
  std::vector<BarChart::Row> rows;
  for (const Json& one : views_or_policies) {
    const Fields fields(one), share = fields.object("share");
    // A view has a name and perhaps a policy, a policy of a replay nothing else.
    BarChart::Row row{.label = view_label(fields)};
    double sum = 0;
    for (const Use& use : kUses) {
      row.values.push_back(std::clamp(finite(share, use.key).value_or(0), 0.0, 1.0));
      sum += row.values.back();
    }
    if (sum > 0) rows.push_back(std::move(row));
  }
  return rows;
}

std::optional<std::string> machine_time_picture(std::vector<BarChart::Row> rows, const std::string& title) {
  if (rows.empty()) return std::nullopt;
  BarChart chart{
      .title = title,
      .description = "Shares of the machine time that was useful, redundant, spent on changes, lost or idle.",
      .x = {.label = "share of machine time", .scale = AxisScale::percent},
      .rows = std::move(rows),
      .shares = true};
  for (const Use& use : kUses) chart.parts.push_back({.name = use.key, .colour = use.colour});
  return svg(chart);
}

std::optional<std::string> frontier_picture(const Fields& plan) {
  const Curve frontier = options_curve(plan.list("frontier"));
  const Curve runners_up = options_curve(plan.list("runners_up"));
  if (frontier.empty() && runners_up.empty()) return std::nullopt;
  const std::string profile = plan.text("profile");
  Chart chart{.title = profile.empty() ? "Time and cost" : "Time and cost of " + profile,
              .description = "Options of a plan, time against cost; the chosen one with its bands of 8 of 10 runs.",
              .x = {.label = "time", .scale = AxisScale::time, .from_zero = false},
              .y = {.label = "cost", .scale = AxisScale::usd, .from_zero = false}};
  chart.lines.push_back({.curve = frontier, .pen = {.colour = palette(0), .width = 1.5}});
  if (!frontier.empty())
    chart.points.push_back({.name = "frontier", .curve = frontier, .colour = palette(0), .size = 4.5});
  if (!runners_up.empty())
    chart.points.push_back(
        {.name = "runners-up", .curve = runners_up, .mark = Mark::ring, .colour = "#222222", .size = 6});
  add_chosen(chart, plan);
  if (const auto deadline = finite(plan, "deadline_s"))
    chart.rules.push_back({.name = "deadline", .at = *deadline, .vertical = true, .colour = "#a33f00"});
  if (const auto budget = finite(plan, "budget_usd"))
    chart.rules.push_back({.name = "budget", .at = *budget, .colour = "#006b4e"});
  return svg(chart);
}

std::optional<std::string> replay_progress_picture(const Fields& replay) {
  Chart chart{.title = replay_title("Progress", replay),
              .description = "Samples trained over time, a line for each policy.",
              .x = {.label = "time", .scale = AxisScale::time},
              .y = {.label = "samples", .scale = AxisScale::whole},
              .lines = policy_lines(replay, "progress", "samples")};
  if (chart.lines.empty()) return std::nullopt;
  if (const auto target = finite(replay, "samples_target"))
    chart.rules.push_back({.name = "target", .at = *target, .colour = "#006b4e"});
  if (const auto deadline = finite(replay, "deadline_s"))
    chart.rules.push_back({.name = "deadline", .at = *deadline, .vertical = true, .colour = "#a33f00"});
  return svg(chart);
}

std::optional<std::string> replay_money_picture(const Fields& replay) {
  Chart chart{.title = replay_title("Money", replay),
              .description = "Money spent over time, a line for each policy.",
              .x = {.label = "time", .scale = AxisScale::time},
              .y = {.label = "spent", .scale = AxisScale::usd},
              .lines = policy_lines(replay, "money", "usd")};
  if (chart.lines.empty()) return std::nullopt;
  if (const auto budget = finite(replay, "budget_usd"))
    chart.rules.push_back({.name = "budget", .at = *budget, .colour = "#006b4e"});
  return svg(chart);
}

std::optional<std::string> stalls_picture(const Fields& stalls) {
  const auto step = finite(stalls, "step_s");
  if (!step || *step <= 0) return std::nullopt;
  double stalled = 0;
  std::vector<BarChart::Row> rows(1);
  for (const char* key : {"interconnect", "prep", "fetch"}) {
    const Fields stall = stalls.object(key);
    const auto time = finite(stall, "seconds");
    const bool alone = std::string_view(key) == "interconnect" && finite(stalls, "devices").value_or(2) < 2;
    if (!time || alone) continue;
    stalled += *time;
    rows.push_back(stall_row(key, stall, *step));
  }
  const double compute = std::max(0.0, *step - stalled);
  rows[0] = {.label = "compute", .values = {compute}, .note = percent_text(compute / *step)};
  if (finite(stalls.object("network"), "seconds"))
    rows.push_back(stall_row("network, apart", stalls.object("network"), *step));
  // Not one braced list: g++ 12 then takes the axis for uninitialised.
  BarChart chart;
  chart.title = "A step of " + figure_text(*step, AxisScale::time);
  chart.description = "What a training step waits for, with 95 % intervals.";
  chart.x.label = "time per step";
  chart.x.scale = AxisScale::time;
  chart.parts = {{.name = "compute", .colour = "#0072b2"}, {.name = "stall", .colour = "#e69f00"}};
  chart.rows = std::move(rows);
  chart.legend = false;
  return svg(chart);
}

}  // namespace mayfly
