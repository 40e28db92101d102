#include "report/axis_ticks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/text.h"

namespace mayfly {
namespace {

constexpr double kLargestDrawn = 1e18;
constexpr double kDay = 86400;

/// 1, 2 or 5 times a power of ten, not below.
double round_step(double least) {
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= least * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

double time_step(double least) {
  constexpr std::array kSteps{1.0,   2.0,   5.0,    10.0,   15.0,   30.0,    60.0,    120.0,   300.0,
                              600.0, 900.0, 1800.0, 3600.0, 7200.0, 10800.0, 21600.0, 43200.0, kDay};
  if (least < 1) return round_step(least);
  if (least > kDay) return kDay * round_step(least / kDay);
  return *std::lower_bound(kSteps.begin(), kSteps.end(), least);
}

double step_for(double least, AxisScale scale) {
  if (scale == AxisScale::time) return time_step(least);
  if (scale == AxisScale::whole) return std::max(1.0, round_step(least));
  return round_step(least);
}

/// Bounds with room between them: of one value, a tenth of it to each side, upwards from 0.
std::pair<double, double> with_room(double low, double high, AxisScale scale) {
  const double size = std::max(std::abs(low), std::abs(high));
  if (high - low > std::max(1e-15, 1e-9 * size)) return {low, high};
  if (size < 1e-12) return {0, 1};
  const double room = scale == AxisScale::whole ? std::max(1.0, 0.1 * size) : 0.1 * size;
  return {low >= 0 ? std::max(0.0, low - room) : low - room, high + room};
}

AxisTicks filled(double low, double high, double step) {
  AxisTicks ticks{.low = low, .high = high, .step = step};
  // By whole multiples, so that no tick is off by the error of a sum and 0 is 0.
  const double first = std::ceil(low / step - 1e-6);
  const double last = std::floor(high / step + 1e-6);
  for (double i = first; i <= last; ++i) ticks.at.push_back(i == 0 ? 0 : i * step);
  return ticks;
}

struct Suffix {
  double unit;
  const char* text;
};
Suffix suffix_for(double size) {
  // Up to 9999 a figure is as short without one.
  if (size < 1e4) return {1, ""};
  if (size < 1e6) return {1e3, "k"};
  if (size < 1e9) return {1e6, "M"};
  return size < 1e12 ? Suffix{1e9, "G"} : Suffix{1e12, "T"};
}

std::string plain_number(double value, double step, double largest) {
  if (largest >= 1e16 || largest < 1e-5) return fmt::format("{:.3g}", value);
  const Suffix suffix = suffix_for(largest);
  const int places = std::clamp(static_cast<int>(std::ceil(-std::log10(step / suffix.unit) - 1e-9)), 0, 9);
  const std::string text = fmt::format("{:.{}f}", value / suffix.unit, places);
  return value == 0 ? "0" : text + suffix.text;
}

/// Three significant digits without an exponent where that stays short.
std::string short_number(double value) {
  const double size = std::abs(value);
  if (size == 0) return "0";
  if (size >= 1e16 || size < 1e-5) return fmt::format("{:.3g}", value);
  // What rounds up to the next suffix takes it.
  const Suffix suffix = suffix_for(size * 1.0005);
  const double scaled = value / suffix.unit;
  const int digits = 2 - static_cast<int>(std::floor(std::log10(std::abs(scaled) * (1 + 1e-12))));
  std::string text = fmt::format("{:.{}f}", scaled, std::max(0, digits));
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  return text + suffix.text;
}

std::string signed_usd(double value, const std::string& digits) {
  return value < 0 ? "-$" + digits.substr(1) : "$" + digits;
}

/// Ticks of days stay in days: format_duration starts them at two, below which 36h is shorter than 1d12h.
std::string time_tick(double value, const AxisTicks& ticks) {
  if (value == 0) return "0";
  if (value < 0) return "-" + time_tick(-value, ticks);
  const double largest = std::max(std::abs(ticks.low), std::abs(ticks.high));
  if (largest < 1) return plain_number(1e3 * value, 1e3 * ticks.step, 1e3 * largest) + "ms";
  if (largest < 60 || ticks.step < 1) return plain_number(value, ticks.step, largest) + "s";
  if (ticks.step >= kDay) return plain_number(value / kDay, ticks.step / kDay, largest / kDay) + "d";
  return format_duration(Seconds(value));
}

}  // namespace

bool drawable(double value) { return std::isfinite(value) && std::abs(value) <= kLargestDrawn; }

AxisTicks ticks_within(double low, double high, AxisScale scale, int wanted) {
  const auto [from, to] = with_room(low, high, scale);
  return filled(from, to, step_for((to - from) / std::max(2, wanted), scale));
}

AxisTicks ticks_around(double low, double high, AxisScale scale, int wanted) {
  const auto [from, to] = with_room(low, high, scale);
  const double step = step_for((to - from) / std::max(2, wanted), scale);
  const double first = step * std::floor(from / step + 1e-6);
  // A range that is small against the step may lie on one tick.
  return filled(first, std::max(first + step, step * std::ceil(to / step - 1e-6)), step);
}

std::string tick_text(double value, AxisScale scale, const AxisTicks& ticks) {
  const double largest = std::max(std::abs(ticks.low), std::abs(ticks.high));
  switch (scale) {
    case AxisScale::time:
      return time_tick(value, ticks);
    case AxisScale::usd:
      return signed_usd(value, plain_number(value, ticks.step, largest));
    case AxisScale::percent:
      return plain_number(100 * value, 100 * ticks.step, 100 * largest) + "%";
    case AxisScale::whole:
    case AxisScale::real:
      return plain_number(value, ticks.step, largest);
  }
  return {};
}

std::string figure_text(double value, AxisScale scale) {
  switch (scale) {
    case AxisScale::time: {
      if (value < 0) return "-" + figure_text(-value, scale);
      if (value == 0) return "0s";
      return value < 1 ? short_number(1e3 * value) + "ms" : format_duration(Seconds(value));
    }
    case AxisScale::usd: {
      const bool cents = std::abs(value) >= 0.995 && std::abs(value) < 1000;
      return signed_usd(value, cents ? fmt::format("{:.2f}", value) : short_number(value));
    }
    case AxisScale::percent:
      return short_number(100 * value) + "%";
    case AxisScale::whole:
    case AxisScale::real:
      return short_number(value);
  }
  return {};
}

}  // namespace mayfly
