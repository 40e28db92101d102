#include "report/pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "report/picture_answers.h"
#include "report/reading.h"
#include "report/svg.h"

namespace mayfly {
namespace {

constexpr const char* kPredicted = "#555555";
constexpr std::size_t kMostKinds = 7;  // of machines; more would look alike

/// The time a view speaks of: its last moment, or the end of its curves.
double end_of(const Fields& view, const Json& times) {
  double end = finite(view, "time_s").value_or(0);
  for (const Json& time : times) end = std::max(end, finite(time).value_or(0));
  return end;
}

std::vector<double> numbers(const Json& list) {
  std::vector<double> values;
  for (const Json& value : list) values.push_back(finite(value).value_or(0));
  return values;
}

/// Kinds beyond the most that can be told apart are one layer.
std::vector<ChartStack::Layer> kinds(const Fields& counts) {
  std::vector<ChartStack::Layer> layers;
  for (const Json& series : counts.list("series")) {
    const Fields fields(series);
    std::vector<double> held = numbers(fields.list("n"));
    if (std::all_of(held.begin(), held.end(), [](double n) { return n <= 0; })) continue;
    if (layers.size() < kMostKinds) {
      const std::string type = fields.text("type"), market = fields.text("market");
      layers.push_back({.name = market.empty() ? type : fmt::format("{} {}", type, market),
                        .y = std::move(held),
                        .colour = palette(layers.size())});
      continue;
    }
    ChartStack::Layer& rest = layers.back();
    rest.name = "others";
    if (rest.y.size() < held.size()) rest.y.resize(held.size());
    for (std::size_t i = 0; i < held.size(); ++i) rest.y[i] += held[i];
  }
  return layers;
}

std::optional<std::string> timeline(const Fields& view) {
  const Fields counts = view.object("counts");
  ChartStack stack{.x = numbers(counts.list("t_s")), .layers = kinds(counts)};
  if (stack.x.empty() || stack.layers.empty()) return std::nullopt;
  Curve used{stack.x, numbers(counts.list("used"))};
  const double end = end_of(view, counts.list("t_s"));
  stack.x.push_back(end);
  if (!used.empty()) used.add(end, used.y.back());
  for (ChartStack::Layer& layer : stack.layers) {
    layer.y.resize(stack.x.size() - 1);
    layer.y.push_back(layer.y.back());
  }
  Chart chart{.title = "Machines of " + view_label(view),
              .description = fmt::format("Machines held over {}, by type and market, and how many of them trained.",
                                         figure_text(end, AxisScale::time)),
              .x = {.label = "time", .scale = AxisScale::time},
              .y = {.label = "machines", .scale = AxisScale::whole},
              .stack = std::move(stack)};
  if (!used.empty())
    chart.lines.push_back(
        {.name = "training", .curve = std::move(used), .pen = {.colour = "#000000", .width = 2}, .steps = true});
  return svg(chart);
}

/// One line for each view that has the curve. `alone`: what it is called where there is nothing to compare it with.
std::vector<ChartLine> view_lines(const Json& views, const char* key, const char* y, const char* alone) {
  std::vector<ChartLine> lines;
  for (const Json& view : views) {
    const Fields fields(view);
    Curve curve = curve_of(fields.object(key), "t_s", y);
    const std::size_t n = lines.size();
    if (!curve.empty())
      lines.push_back({.name = view_label(fields),
                       .curve = std::move(curve),
                       .pen = {.colour = palette(n), .width = n == 0 ? 3.0 : 2.5, .dashes = dashes(n)}});
  }
  if (lines.size() == 1) lines[0].name = alone;
  return lines;
}

void add_rule(Chart& chart, const char* name, std::optional<double> at, bool vertical, const char* colour) {
  if (at) chart.rules.push_back({.name = name, .at = *at, .vertical = vertical, .colour = colour});
}

/// From nothing at the start to `goal` at the predicted time, and between the lines of its early and late bound.
void add_prediction(Chart& chart, const Fields& predicted, std::optional<double> goal) {
  const auto time = finite(predicted, "time_s");
  if (!time || *time <= 0 || !goal) return;
  chart.lines.push_back({.name = "predicted",
                         .curve = {{0, *time}, {0, *goal}},
                         .pen = {.colour = kPredicted, .width = 2, .dashes = "5 3"}});
  const auto early = finite(predicted, "time_s_p10"), late = finite(predicted, "time_s_p90");
  if (!early || !late || *early <= 0 || *late < *early) return;
  chart.bands.push_back({.name = "8 of 10 runs",
                         .x = {0, *early, *late},
                         .low = {0, *goal * *early / *late, *goal},
                         .high = {0, *goal, *goal},
                         .colour = kPredicted});
}

std::optional<std::string> progress(const Json& views, const Fields& view) {
  Chart chart{.title = "Progress of " + view_label(view),
              .description = "Samples trained over time; the line falls where work was lost.",
              .x = {.label = "time", .scale = AxisScale::time},
              .y = {.label = "samples", .scale = AxisScale::whole},
              .lines = view_lines(views, "progress", "samples", "trained")};
  if (chart.lines.empty()) return std::nullopt;
  const Fields predicted = view.object("predicted");
  const auto target = finite(view, "target_samples");
  const auto goal = finite(predicted, "target_samples");
  add_prediction(chart, predicted, goal ? goal : target);
  add_rule(chart, "target", target, false, "#006b4e");
  add_rule(chart, "deadline", finite(view, "deadline_s"), true, "#a33f00");
  return svg(chart);
}

std::optional<std::string> loss(const Json& views, const Fields& view) {
  Chart chart{.title = "Loss of " + view_label(view),
              .description = "Loss over time.",
              .x = {.label = "time", .scale = AxisScale::time},
              .y = {.label = "loss", .scale = AxisScale::real},
              .lines = view_lines(views, "losses", "loss", "training")};
  const Curve validated = curve_of(view.object("validation"), "t_s", "loss");
  if (chart.lines.empty() && validated.empty()) return std::nullopt;
  const Curve predicted = curve_of(view.object("predicted").object("loss"), "t_s", "loss");
  if (!predicted.empty())
    chart.lines.push_back(
        {.name = "predicted", .curve = predicted, .pen = {.colour = kPredicted, .width = 2, .dashes = "5 3"}});
  if (!validated.empty()) {
    const Pen pen{.colour = "#000000", .width = 1.2};
    chart.lines.push_back({.curve = validated, .pen = pen});
    chart.points.push_back({.name = "validation", .curve = validated, .colour = pen.colour, .size = 4});
  }
  add_rule(chart, "target", finite(view, "target_loss"), false, "#006b4e");
  add_rule(chart, "deadline", finite(view, "deadline_s"), true, "#a33f00");
  return svg(chart);
}

std::optional<std::string> money(const Json& views, const Fields& view) {
  Chart chart{.title = "Money of " + view_label(view),
              .description = "Money spent over time.",
              .x = {.label = "time", .scale = AxisScale::time},
              .y = {.label = "spent", .scale = AxisScale::usd},
              .lines = view_lines(views, "money", "usd", "spent")};
  // Machines without a price leave a line of zeros.
  const bool priced = std::any_of(chart.lines.begin(), chart.lines.end(), [](const ChartLine& line) {
    return std::any_of(line.curve.y.begin(), line.curve.y.end(), [](double usd) { return usd > 0; });
  });
  if (!priced) return std::nullopt;
  const Fields predicted = view.object("predicted");
  if (const auto time = finite(predicted, "time_s"), cost = finite(predicted, "cost_usd"); time && cost)
    chart.lines.push_back({.name = "predicted",
                           .curve = {{0, *time}, {0, *cost}},
                           .pen = {.colour = kPredicted, .width = 2, .dashes = "5 3"}});
  add_rule(chart, "budget", finite(view, "budget_usd"), false, "#006b4e");
  add_rule(chart, "on demand", finite(view, "on_demand_cost_usd"), false, "#a33f00");
  return svg(chart);
}

}  // namespace

std::vector<Picture> pictures(const Json& report) {
  std::vector<Picture> all;
  const auto add = [&](const char* name, std::optional<std::string> picture) {
    if (picture) all.push_back({name, *std::move(picture)});
  };
  const Fields document(report);
  const Json& views = document.list("views");
  if (!views.empty()) {
    const Fields view(views[0]);
    add("timeline", timeline(view));
    add("progress", progress(views, view));
    add("loss", loss(views, view));
    add("money", money(views, view));
    add("machine-time", machine_time_picture(machine_time_rows(views), "Machine time"));
  }
  add("frontier", frontier_picture(document.object("plan")));
  const Json& policies = document.object("replay").list("policies");
  add("replay-progress", replay_progress_picture(document.object("replay")));
  add("replay-machine-time", machine_time_picture(machine_time_rows(policies), "Machine time, by policy"));
  add("replay-money", replay_money_picture(document.object("replay")));
  add("stalls", stalls_picture(document.object("profile").object("stalls")));
  return all;
}

}  // namespace mayfly
