#pragma once

#include <string>
#include <vector>

#include "report/svg_canvas.h"

namespace mayfly {

// Sizes that both kinds of chart share, in units of the viewBox. Letters of 15 on 640 can still be read in one column
// of a two-column paper, which is about half that size.
constexpr double kChartWidth = 640;
constexpr double kChartMargin = 14;
constexpr double kChartLetters = 15;

/// A sample of how something is drawn, and what it is. The sample is the first of fill, mark and pen that is there.
struct LegendEntry {
  std::string name{};
  const char* fill = nullptr;
  double opacity = 1;
  const Mark* mark = nullptr;
  Pen pen{};
};

/// The title and below it the legend, in as many rows as it takes. Returns where they end; without a canvas nothing is
/// drawn, as the height of a page must be known before it is begun.
double draw_heading(SvgCanvas* canvas, const std::string& title, const std::vector<LegendEntry>& legend);

}  // namespace mayfly
