#include "report/svg.h"

#include <algorithm>
#include <array>
#include <utility>

#include "report/svg_legend.h"

namespace mayfly {
namespace {

constexpr double kPlotHeight = 250;
constexpr double kNoteLetters = 14;
constexpr double kNoteRow = 18;
constexpr const char* kAxisColour = "#444444";
constexpr const char* kGridColour = "#e4e4e4";
constexpr double kLongestRuleName = 130;

/// Drawable figures seen so far.
struct Extent {
  std::optional<double> low{};
  std::optional<double> high{};

  void include(double value) {
    if (!drawable(value)) return;
    low = std::min(value, low.value_or(value));
    high = std::max(value, high.value_or(value));
  }
  void include(const std::vector<double>& values) {
    for (const double value : values) include(value);
  }
};

std::vector<double> tops(const ChartStack& stack, std::size_t layers) {
  std::vector<double> sums(stack.x.size(), 0.0);
  for (std::size_t layer = 0; layer < layers; ++layer) {
    const auto& y = stack.layers[layer].y;
    for (std::size_t i = 0; i < std::min(sums.size(), y.size()); ++i)
      if (drawable(y[i]) && y[i] > 0) sums[i] += y[i];
  }
  return sums;
}

/// The data alone; rules come after, as far as they fit.
Extent extent_of(const Chart& chart, bool along_x) {
  Extent extent;
  if (chart.stack) extent.include(along_x ? chart.stack->x : tops(*chart.stack, chart.stack->layers.size()));
  for (const ChartBand& band : chart.bands) {
    extent.include(along_x ? band.x : band.low);
    if (!along_x) extent.include(band.high);
  }
  for (const ChartLine& line : chart.lines) extent.include(along_x ? line.curve.x : line.curve.y);
  for (const ChartPoints& points : chart.points) extent.include(along_x ? points.curve.x : points.curve.y);
  if ((along_x ? chart.x : chart.y).from_zero) extent.include(0);
  return extent;
}

void include_rules(Extent& extent, const Chart& chart, bool vertical) {
  const Extent data = extent;
  for (const ChartRule& rule : chart.rules) {
    if (rule.vertical != vertical || !drawable(rule.at)) continue;
    const double low = data.low.value_or(rule.at), high = data.high.value_or(rule.at);
    const double with = std::max(high, rule.at) - std::min(low, rule.at);
    if (high <= low || with <= 4 * (high - low)) extent.include(rule.at);
  }
}

std::vector<LegendEntry> legend_of(const Chart& chart) {
  std::vector<LegendEntry> legend;
  const auto add = [&](LegendEntry entry) {
    if (!entry.name.empty()) legend.push_back(std::move(entry));
  };
  if (chart.stack)
    for (const auto& layer : chart.stack->layers) add({.name = layer.name, .fill = layer.colour, .opacity = 0.85});
  for (const ChartLine& line : chart.lines) add({.name = line.name, .pen = line.pen});
  for (const ChartBand& band : chart.bands) add({.name = band.name, .fill = band.colour, .opacity = 0.18});
  for (const ChartPoints& points : chart.points)
    add({.name = points.name, .mark = &points.mark, .pen = {.colour = points.colour}});
  return legend;
}

/// The name of a rule in a margin, once it is known where.
struct Note {
  const ChartRule* rule = nullptr;
  std::string name{};
  std::string figure{};
  double at = 0;  ///< along the axis, on the page
  double row = 0;
};

class ChartPainter {
 public:
  explicit ChartPainter(const Chart& chart) : chart_(chart), legend_(legend_of(chart)) {
    Extent x = extent_of(chart, true), y = extent_of(chart, false);
    include_rules(x, chart, true);
    include_rules(y, chart, false);
    y_ = ticks_around(y.low.value_or(0), y.high.value_or(1), chart.y.scale, 5);
    place_plot();
    place_x_ticks(x);
    place_notes();
    const double strip = kNoteRow * rows_;
    plot_.top += strip;
    plot_.bottom += strip;
  }

  std::string document() {
    SvgCanvas canvas(kChartWidth, plot_.bottom + 58, chart_.title, chart_.description);
    draw_heading(&canvas, chart_.title, legend_);
    draw_axes(canvas);
    draw_stack(canvas);
    for (const ChartBand& band : chart_.bands) draw_band(canvas, band);
    draw_rules(canvas);
    for (const ChartLine& line : chart_.lines) draw_line(canvas, line);
    for (const ChartPoints& points : chart_.points)
      for (const Spot spot : spots(points.curve)) canvas.mark(spot, points.mark, points.size, points.colour);
    return canvas.document();
  }

 private:
  void place_plot() {
    plot_.top = draw_heading(nullptr, chart_.title, legend_) + 10;
    plot_.bottom = plot_.top + kPlotHeight;
    double widest = 0;
    for (const double tick : y_.at)
      widest = std::max(widest, text_width(tick_text(tick, chart_.y.scale, y_), kChartLetters));
    plot_.left = kChartMargin + widest + 8 + (chart_.y.label.empty() ? 0 : 22);
    plot_.right = kChartWidth - 2 * kChartMargin;
    for (const ChartRule& rule : chart_.rules) {
      if (rule.vertical || !drawable(rule.at)) continue;
      const Note note = note_of(rule);
      const double width = std::max(text_width(note.name, kNoteLetters), text_width(note.figure, kNoteLetters));
      plot_.right = std::min(plot_.right, kChartWidth - kChartMargin - width - 6);
    }
  }

  /// As many as there is room for between their texts.
  void place_x_ticks(const Extent& x) {
    for (int wanted = 7; wanted >= 2; --wanted) {
      const double low = x.low.value_or(0), high = x.high.value_or(1);
      // Marks need room around them; lines may end at the edge.
      x_ = chart_.points.empty() ? ticks_within(low, high, chart_.x.scale, wanted)
                                 : ticks_around(low, high, chart_.x.scale, wanted);
      double widest = 0;
      for (const double tick : x_.at)
        widest = std::max(widest, text_width(tick_text(tick, chart_.x.scale, x_), kChartLetters));
      if (widest + 12 <= (plot_.right - plot_.left) * x_.step / (x_.high - x_.low)) return;
    }
  }

  Note note_of(const ChartRule& rule) const {
    return {.rule = &rule,
            .name = shortened(rule.name, kLongestRuleName, kNoteLetters),
            .figure = figure_text(rule.at, rule.vertical ? chart_.x.scale : chart_.y.scale)};
  }

  /// Vertical rules: above the plot, in as many rows as keep the texts apart. Horizontal ones: right of it, below each
  /// other where they would touch.
  void place_notes() {
    std::vector<std::vector<std::pair<double, double>>> taken;
    for (const ChartRule& rule : chart_.rules) {
      if (!drawable(rule.at)) continue;
      Note note = note_of(rule);
      if (!rule.vertical) {
        mark_if_off(note, y_, "\u2191", "\u2193");
        note.at = std::clamp(y_at(rule.at), plot_.top, plot_.bottom);
        right_.push_back(note);
        continue;
      }
      mark_if_off(note, x_, "\u2192", "\u2190");
      const double half = text_width(note.name + " " + note.figure, kNoteLetters) / 2;
      note.at = std::clamp(x_at(rule.at), plot_.left + half, std::max(plot_.left + half, plot_.right - half));
      const auto free = std::find_if(taken.begin(), taken.end(), [&](const auto& row) {
        return std::none_of(row.begin(), row.end(), [&](const auto& other) {
          return note.at - half < other.second + 8 && other.first - 8 < note.at + half;
        });
      });
      note.row = static_cast<double>(free - taken.begin());
      if (free == taken.end()) taken.emplace_back();
      taken[static_cast<std::size_t>(note.row)].emplace_back(note.at - half, note.at + half);
      above_.push_back(note);
    }
    rows_ = static_cast<double>(taken.size());
    spread_right();
  }

  static void mark_if_off(Note& note, const AxisTicks& axis, const char* beyond, const char* before) {
    if (note.rule->at > axis.high) note.figure += std::string(" ") + beyond;
    if (note.rule->at < axis.low) note.figure += std::string(" ") + before;
  }

  void spread_right() {
    std::sort(right_.begin(), right_.end(), [](const Note& a, const Note& b) { return a.at < b.at; });
    constexpr double kApart = 2 * kNoteRow + 2;
    for (std::size_t i = 0; i < right_.size(); ++i)
      right_[i].at = std::max(right_[i].at, i == 0 ? plot_.top + 6 : right_[i - 1].at + kApart);
    double lowest = plot_.bottom - kNoteRow;
    for (auto note = right_.rbegin(); note != right_.rend(); ++note) {
      note->at = std::min(note->at, lowest);
      lowest = note->at - kApart;
    }
  }

  void draw_axes(SvgCanvas& canvas) const {
    for (const double tick : y_.at) {
      canvas.stroke({plot_.left, y_at(tick)}, {plot_.right, y_at(tick)}, {.colour = kGridColour});
      canvas.text({plot_.left - 7, y_at(tick) + 5}, tick_text(tick, chart_.y.scale, y_),
                  {.size = kChartLetters, .anchor = Anchor::end});
    }
    for (const double tick : x_.at) {
      canvas.stroke({x_at(tick), plot_.bottom}, {x_at(tick), plot_.bottom + 5}, {.colour = kAxisColour});
      canvas.text({x_at(tick), plot_.bottom + 21}, tick_text(tick, chart_.x.scale, x_),
                  {.size = kChartLetters, .anchor = Anchor::middle});
    }
    canvas.stroke({plot_.left, plot_.top}, {plot_.left, plot_.bottom}, {.colour = kAxisColour});
    canvas.stroke({plot_.left, plot_.bottom}, {plot_.right, plot_.bottom}, {.colour = kAxisColour});
    canvas.text({(plot_.left + plot_.right) / 2, plot_.bottom + 45}, chart_.x.label,
                {.size = kChartLetters, .anchor = Anchor::middle});
    canvas.text({kChartMargin + 12, (plot_.top + plot_.bottom) / 2}, chart_.y.label,
                {.size = kChartLetters, .anchor = Anchor::middle, .upwards = true});
  }

  void draw_stack(SvgCanvas& canvas) const {
    if (!chart_.stack) return;
    for (std::size_t layer = 0; layer < chart_.stack->layers.size(); ++layer) {
      std::vector<Spot> outline = stairs({chart_.stack->x, tops(*chart_.stack, layer + 1)});
      const std::vector<Spot> floor = stairs({chart_.stack->x, tops(*chart_.stack, layer)});
      outline.insert(outline.end(), floor.rbegin(), floor.rend());
      canvas.area(outline, chart_.stack->layers[layer].colour, 0.85);
    }
  }

  void draw_band(SvgCanvas& canvas, const ChartBand& band) const {
    std::vector<Spot> outline = spots({band.x, band.low});
    const std::vector<Spot> roof = spots({band.x, band.high});
    outline.insert(outline.end(), roof.rbegin(), roof.rend());
    canvas.area(outline, band.colour, 0.18);
  }

  void draw_line(SvgCanvas& canvas, const ChartLine& line) const {
    const std::vector<Spot> joined = line.steps ? stairs(line.curve) : spots(line.curve);
    if (joined.size() == 1) canvas.mark(joined[0], Mark::disc, 1.5 * line.pen.width, line.pen.colour);
    canvas.polyline(joined, line.pen);
  }

  void draw_rules(SvgCanvas& canvas) const {
    for (const Note& note : above_) {
      const double x = x_at(note.rule->at), y = note_y(note);
      if (x >= plot_.left && x <= plot_.right + 0.05)
        canvas.stroke({x, y + 4}, {x, plot_.bottom}, {.colour = note.rule->colour, .width = 1.5, .dashes = "7 4"});
    }
    for (const Note& note : above_) {
      const double half = text_width(note.name + " " + note.figure, kNoteLetters) / 2, y = note_y(note);
      // The rules of rows above run behind the text.
      canvas.box({.left = note.at - half, .top = y - 13, .right = note.at + half, .bottom = y + 3}, "#ffffff");
      canvas.text({note.at, y}, note.name + " " + note.figure,
                  {.size = kNoteLetters, .anchor = Anchor::middle, .colour = note.rule->colour});
    }
    const double strip = kNoteRow * rows_;
    for (const Note& note : right_) {
      const double y = y_at(note.rule->at);
      if (y >= plot_.top - 0.05 && y <= plot_.bottom + 0.05)
        canvas.stroke({plot_.left, y}, {plot_.right, y}, {.colour = note.rule->colour, .width = 1.5, .dashes = "7 4"});
      const Lettering letters{.size = kNoteLetters, .colour = note.rule->colour};
      canvas.text({plot_.right + 6, note.at + strip + 2}, note.name, letters);
      canvas.text({plot_.right + 6, note.at + strip + 2 + kNoteRow - 2}, note.figure, letters);
    }
  }

  double note_y(const Note& note) const { return plot_.top - 7 - kNoteRow * note.row; }
  double x_at(double value) const {
    return plot_.left + (plot_.right - plot_.left) * (value - x_.low) / (x_.high - x_.low);
  }
  double y_at(double value) const {
    return plot_.bottom - (plot_.bottom - plot_.top) * (value - y_.low) / (y_.high - y_.low);
  }

  std::vector<Spot> spots(const Curve& curve) const {
    std::vector<Spot> all;
    for (std::size_t i = 0; i < curve.size(); ++i)
      if (drawable(curve.x[i]) && drawable(curve.y[i])) all.push_back({x_at(curve.x[i]), y_at(curve.y[i])});
    return all;
  }
  std::vector<Spot> stairs(const Curve& curve) const {
    std::vector<Spot> all;
    for (const Spot spot : spots(curve)) {
      if (!all.empty()) all.push_back({spot.x, all.back().y});
      all.push_back(spot);
    }
    return all;
  }

  const Chart& chart_;
  std::vector<LegendEntry> legend_;
  AxisTicks x_{};
  AxisTicks y_{};
  Frame plot_{};
  std::vector<Note> above_{};
  std::vector<Note> right_{};
  double rows_ = 0;  ///< of notes above the plot
};

}  // namespace

const char* palette(std::size_t n) {
  static constexpr std::array kColours{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555"};
  return kColours[n % kColours.size()];
}

const char* dashes(std::size_t n) {
  static constexpr std::array kDashes{"", "9 4", "3 3", "12 3 3 3", "6 6"};
  return kDashes[n % kDashes.size()];
}

std::string svg(const Chart& chart) { return ChartPainter(chart).document(); }

}  // namespace mayfly
