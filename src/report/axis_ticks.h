#pragma once

#include <string>
#include <vector>

namespace mayfly {

/// What the figures along an axis are; it decides where ticks may stand and how they are written.
enum class AxisScale {
  whole,   ///< things that are counted: no ticks between two of them; 48k, 1.5M
  real,    ///< 0.05, 1.5
  time,    ///< seconds; ticks at 5m, 1h30m, 2d instead of 500s
  usd,     ///< $0.05
  percent  ///< a share of 1; 25%
};

/// Where an axis runs and where its ticks are. Ticks ascend by `step`, which is above 0, and lie within the range.
struct AxisTicks {
  double low = 0;
  double high = 1;
  double step = 1;
  std::vector<double> at{};
};

/// Whether an axis can show it: finite, and far enough from overflow that differences of two are finite, too.
bool drawable(double value);

/// Round figures within the range, about `wanted` of them (at least 2). A range of one value gets some room around it.
/// Requires drawable bounds, low <= high.
AxisTicks ticks_within(double low, double high, AxisScale scale, int wanted);
/// The same with the range widened to the next ticks outside.
AxisTicks ticks_around(double low, double high, AxisScale scale, int wanted);

/// A tick as text: as many digits as neighbours need to differ, the same suffix (k, M, ...) along the axis.
std::string tick_text(double value, AxisScale scale, const AxisTicks& ticks);

/// A single figure as text, three digits: 1h30m, 12.5ms, $0.0012, 48k, 62%.
std::string figure_text(double value, AxisScale scale);

}  // namespace mayfly
