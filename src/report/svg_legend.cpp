#include "report/svg_legend.h"

namespace mayfly {
namespace {

constexpr double kLegendRow = 23;
constexpr double kSample = 26;
constexpr double kTitleLetters = 17;
constexpr double kRoom = kChartWidth - 2 * kChartMargin;

void draw_entry(SvgCanvas& canvas, const LegendEntry& entry, const std::string& name, Spot at) {
  const Spot middle{at.x + kSample / 2, at.y - 5};
  if (entry.fill != nullptr) {
    // Something pale is filled twice so as to be seen in a sample this small.
    const double opacity = entry.opacity < 0.5 ? 2 * entry.opacity : entry.opacity;
    canvas.area({{at.x + 4, at.y - 12}, {at.x + 22, at.y - 12}, {at.x + 22, at.y + 1}, {at.x + 4, at.y + 1}},
                entry.fill, opacity);
  } else if (entry.mark != nullptr) {
    canvas.mark(middle, *entry.mark, 5, entry.pen.colour);
  } else {
    canvas.stroke({at.x, middle.y}, {at.x + kSample, middle.y}, entry.pen);
  }
  canvas.text({at.x + kSample + 6, at.y}, name, {.size = kChartLetters});
}

}  // namespace

double draw_heading(SvgCanvas* canvas, const std::string& title, const std::vector<LegendEntry>& legend) {
  double bottom = kChartMargin;
  if (!title.empty()) {
    bottom += 16;
    if (canvas != nullptr)  // bold letters are wider by about a tenth
      canvas->text({kChartMargin, bottom}, shortened(title, kRoom / 1.1, kTitleLetters),
                   {.size = kTitleLetters, .bold = true});
    bottom += 6;
  }
  double x = kChartMargin;
  bool open = false;
  for (const LegendEntry& entry : legend) {
    const std::string name = shortened(entry.name, kRoom - kSample - 6, kChartLetters);
    const double width = kSample + 6 + text_width(name, kChartLetters) + 20;
    if (!open || x + width - 20 > kChartWidth - kChartMargin) {
      x = kChartMargin;
      bottom += kLegendRow;
      open = true;
    }
    if (canvas != nullptr) draw_entry(*canvas, entry, name, {x, bottom - 4});
    x += width;
  }
  return bottom + 6;
}

}  // namespace mayfly
