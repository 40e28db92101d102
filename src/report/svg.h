#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/axis_ticks.h"
#include "report/curve.h"
#include "report/svg_canvas.h"

// Charts as values, and the SVG they make. Texts may come from a document: they are escaped and cut where they are
// long. Figures may be anything: what is not drawable() is left out, so a chart of nothing but such figures shows bare
// axes.
namespace mayfly {

/// The n-th of the colours of Okabe and Ito (2008), which colour-blind people can tell apart; they come round again.
/// Their yellow is too pale for lines on white; a dark grey stands in its place.
const char* palette(std::size_t n);
/// The dashes that go with it, so that lines differ in black and white as well.
const char* dashes(std::size_t n);

struct ChartAxis {
  std::string label{};
  AxisScale scale = AxisScale::real;
  bool from_zero = true;  ///< else from the smallest figure
};

struct ChartLine {
  std::string name{};  ///< in the legend; empty: not there
  Curve curve{};
  Pen pen{.width = 2.5};
  bool steps = false;  ///< a value holds until the next; else straight lines
};

/// Between two curves over the same x.
struct ChartBand {
  std::string name{};
  std::vector<double> x{};
  std::vector<double> low{};
  std::vector<double> high{};
  const char* colour = "#000000";
};

/// Step functions on top of each other, the first at the bottom. What is missing of a layer counts as 0.
struct ChartStack {
  struct Layer {
    std::string name{};
    std::vector<double> y{};
    const char* colour = "#000000";
  };
  std::vector<double> x{};  ///< ascending; the last one is where all layers end
  std::vector<Layer> layers{};
};

struct ChartPoints {
  std::string name{};
  Curve curve{};
  Mark mark = Mark::disc;
  const char* colour = "#000000";
  double size = 4.5;  ///< radius
};

/// A line across the plot at one value, with its name in the margin. One that lies so far off that it would squeeze
/// the data into a quarter of the axis is not drawn: its name and value stand at the edge, with an arrow.
struct ChartRule {
  std::string name{};
  double at = 0;
  bool vertical = false;
  const char* colour = "#000000";
};

/// Drawn in this order: stack, bands, rules, lines, points. The legend has those with a name, in the same order.
struct Chart {
  std::string title{};
  std::string description{};  ///< for those who cannot see it
  ChartAxis x{};
  ChartAxis y{};
  std::optional<ChartStack> stack{};
  std::vector<ChartBand> bands{};
  std::vector<ChartRule> rules{};
  std::vector<ChartLine> lines{};
  std::vector<ChartPoints> points{};
};

/// 640 units wide; the height grows with the legend.
std::string svg(const Chart& chart);

/// Horizontal bars, one a row, each of parts side by side.
struct BarChart {
  struct Part {
    std::string name{};
    const char* colour = "#000000";
  };
  struct Row {
    std::string label{};
    std::vector<double> values{};  ///< one for each part; what is missing, or below 0, has no length
    std::string note{};            ///< right of the bar
    std::optional<double> low{};   ///< of a whisker, with `high`; may reach beyond 0, where it is cut
    std::optional<double> high{};
  };
  std::string title{};
  std::string description{};
  ChartAxis x{};
  std::vector<Part> parts{};
  std::vector<Row> rows{};  ///< at most 60 are drawn
  bool shares = false;      ///< the axis ends at 1, and parts that have room show their value
  bool legend = true;       ///< of the parts that some row has
};

std::string svg(const BarChart& chart);

}  // namespace mayfly
