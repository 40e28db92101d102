#include <algorithm>

#include "report/svg.h"
#include "report/svg_legend.h"

namespace mayfly {
namespace {

constexpr double kBarRow = 36;
constexpr double kBar = 24;
constexpr double kLongestLabel = 190;
constexpr double kLongestNote = 130;
constexpr std::size_t kMostRows = 60;

double length_of(const BarChart::Row& row, std::size_t part) {
  if (part >= row.values.size() || !drawable(row.values[part])) return 0;
  return std::max(0.0, row.values[part]);
}

double longest(const BarChart& chart) {
  double most = chart.shares ? 1 : 0;
  for (const BarChart::Row& row : chart.rows) {
    double sum = 0;
    for (std::size_t part = 0; part < chart.parts.size(); ++part) sum += length_of(row, part);
    if (row.high && drawable(*row.high)) sum = std::max(sum, *row.high);
    if (drawable(sum)) most = std::max(most, sum);
  }
  return most;
}

/// Letters that can be read on the colour: by its lightness as the eye weighs it (ITU-R BT.601).
const char* letters_on(const std::string& colour) {
  const auto channel = [&](std::size_t at) { return std::stoi(colour.substr(at, 2), nullptr, 16); };
  return 0.299 * channel(1) + 0.587 * channel(3) + 0.114 * channel(5) > 140 ? "#000000" : "#ffffff";
}

class BarPainter {
 public:
  explicit BarPainter(const BarChart& chart) : chart_(chart) {
    for (std::size_t part = 0; part < chart.parts.size(); ++part) {
      const bool seen = std::any_of(chart.rows.begin(), chart.rows.end(),
                                    [&](const BarChart::Row& row) { return length_of(row, part) > 0; });
      if (chart.legend && seen) legend_.push_back({.name = chart.parts[part].name, .fill = chart.parts[part].colour});
    }
    rows_ = std::min(chart.rows.size(), kMostRows);
    double label = 0, note = 0;
    for (std::size_t i = 0; i < rows_; ++i) {
      label = std::max(label, text_width(shortened_label(i), kChartLetters));
      note = std::max(note, text_width(shortened_note(i), kChartLetters));
    }
    plot_.left = kChartMargin + label + 8;
    plot_.right = kChartWidth - std::max(2 * kChartMargin, kChartMargin + note + (note > 0 ? 6 : 0));
    plot_.top = draw_heading(nullptr, chart.title, legend_) + 6;
    plot_.bottom = plot_.top + kBarRow * static_cast<double>(rows_) + 4;
    for (int wanted = 6; wanted >= 2; --wanted) {
      x_ = chart.shares ? ticks_within(0, longest(chart), chart.x.scale, wanted)
                        : ticks_around(0, longest(chart), chart.x.scale, wanted);
      double widest = 0;
      for (const double tick : x_.at)
        widest = std::max(widest, text_width(tick_text(tick, chart.x.scale, x_), kChartLetters));
      if (widest + 12 <= (plot_.right - plot_.left) * x_.step / (x_.high - x_.low)) break;
    }
  }

  std::string document() {
    SvgCanvas canvas(kChartWidth, plot_.bottom + 56, chart_.title, chart_.description);
    draw_heading(&canvas, chart_.title, legend_);
    for (const double tick : x_.at) {
      canvas.stroke({x_at(tick), plot_.top}, {x_at(tick), plot_.bottom + 4}, {.colour = "#e4e4e4"});
      canvas.text({x_at(tick), plot_.bottom + 20}, tick_text(tick, chart_.x.scale, x_),
                  {.size = kChartLetters, .anchor = Anchor::middle});
    }
    for (std::size_t i = 0; i < rows_; ++i) draw_row(canvas, i);
    canvas.stroke({plot_.left, plot_.top}, {plot_.left, plot_.bottom}, {.colour = "#444444"});
    canvas.text({(plot_.left + plot_.right) / 2, plot_.bottom + 44}, chart_.x.label,
                {.size = kChartLetters, .anchor = Anchor::middle});
    return canvas.document();
  }

 private:
  std::string shortened_label(std::size_t row) const {
    return shortened(chart_.rows[row].label, kLongestLabel, kChartLetters);
  }
  std::string shortened_note(std::size_t row) const {
    return shortened(chart_.rows[row].note, kLongestNote, kChartLetters);
  }

  void draw_row(SvgCanvas& canvas, std::size_t i) const {
    const BarChart::Row& row = chart_.rows[i];
    const double top = plot_.top + kBarRow * static_cast<double>(i) + (kBarRow - kBar) / 2 + 2;
    const double base = top + kBar / 2 + 5;
    canvas.text({plot_.left - 8, base}, shortened_label(i), {.size = kChartLetters, .anchor = Anchor::end});
    double from = 0;
    for (std::size_t part = 0; part < chart_.parts.size(); ++part) {
      const double length = length_of(row, part);
      if (length <= 0 || !drawable(from + length)) continue;
      const Frame box{.left = x_at(from), .top = top, .right = x_at(from + length), .bottom = top + kBar};
      canvas.box(box, chart_.parts[part].colour);
      draw_value(canvas, box, length, chart_.parts[part].colour);
      from += length;
    }
    if (row.low && row.high) draw_whisker(canvas, *row.low, *row.high, top + kBar / 2);
    canvas.text({plot_.right + 6, base}, shortened_note(i), {.size = kChartLetters});
  }

  void draw_value(SvgCanvas& canvas, const Frame& box, double value, const char* colour) const {
    if (!chart_.shares) return;
    const AxisTicks whole{.low = 0, .high = 1, .step = 0.01};
    const std::string text = tick_text(value, chart_.x.scale, whole);
    if (text_width(text, kChartLetters) + 6 > box.right - box.left) return;
    canvas.text({(box.left + box.right) / 2, (box.top + box.bottom) / 2 + 5}, text,
                {.size = kChartLetters, .anchor = Anchor::middle, .colour = letters_on(colour)});
  }

  void draw_whisker(SvgCanvas& canvas, double low, double high, double y) const {
    if (!drawable(low) || !drawable(high) || high < low) return;
    const double left = x_at(std::clamp(low, 0.0, x_.high)), right = x_at(std::clamp(high, 0.0, x_.high));
    const Pen pen{.colour = "#222222", .width = 1.5};
    canvas.stroke({left, y}, {right, y}, pen);
    // An end that is cut has no cap.
    if (low >= 0) canvas.stroke({left, y - 6}, {left, y + 6}, pen);
    if (high >= 0) canvas.stroke({right, y - 6}, {right, y + 6}, pen);
  }

  double x_at(double value) const { return plot_.left + (plot_.right - plot_.left) * value / x_.high; }

  const BarChart& chart_;
  std::vector<LegendEntry> legend_{};
  std::size_t rows_ = 0;
  AxisTicks x_{};
  Frame plot_{};
};

}  // namespace

std::string svg(const BarChart& chart) { return BarPainter(chart).document(); }

}  // namespace mayfly
