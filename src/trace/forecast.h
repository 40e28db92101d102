#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "trace/trace.h"

namespace mayfly {

/// One interval of a trace: what came and went in it, and what was there at its end.
struct Interval {
  int available = 0;
  int added = 0;
  int removed = 0;
  bool operator==(const Interval&) const = default;
};

/// The series in intervals [k gap, (k+1) gap) that end by `duration`; the last, if cut short, counts too. A change on a
/// boundary belongs to the interval it opens. Requires a positive gap.
std::vector<Interval> intervals(const Series& series, Seconds gap, Seconds duration);

/// How the next counts are guessed from a window of past ones.
enum class Forecaster {
  persistence,  ///< the last count stays
  average,      ///< the window's mean
  smoothing,    ///< simple exponential smoothing, its rate the best on the window
  holt,         ///< exponential smoothing with a damped additive trend, likewise
  arima,        ///< ARIMA(1,1,0) with drift, exact maximum likelihood: docs/models.md#forecast
};
inline constexpr Forecaster kForecasters[] = {Forecaster::persistence, Forecaster::average, Forecaster::smoothing,
                                              Forecaster::holt, Forecaster::arima};
std::string_view name(Forecaster method);

/// The `horizon` counts after the window, neither rounded nor bounded. Requires a window of at least one count; `holt`
/// and `arima` persist below 2 and 4.
std::vector<double> forecast(Forecaster method, std::span<const double> window, int horizon);

/// Past intervals a forecast of `horizon` looks at: Parcae's table (5 -> 10, 7 -> 8, 14 -> 17), else as many as it
/// looks ahead, but 10 for the short horizons that Parcae does not allow.
int history_length(int horizon);

/// Parcae's availability predictor (NSDI 2024) as its artifact runs it: the window is cleaned, ARIMA extrapolates, the
/// result is capped, clamped and thinned by penalties, and where it came out flat Poisson preemptions are added.
/// Quirk kept: a penalty, once set by a trend, is never lifted, so one object follows one trace from its start.
class ParcaeForecast {
 public:
  struct Options {
    std::optional<int> history{};  ///< intervals looked at; default history_length(horizon)
    bool poisson = true;
    int least = 8;  ///< forecasts are clamped to [least, most]
    int most = 32;
    int growth = 3;  ///< no later count is further than this from the first
    std::uint64_t seed = 1;
  };
  explicit ParcaeForecast(Options options) : options_(options), rng_(options.seed) {}

  /// What the intervals after `history` will bring; never both additions and removals. Persistence until there are more
  /// intervals than it looks at. Requires at least one.
  std::vector<Interval> next(std::span<const Interval> history, int horizon);

 private:
  void note_trend(std::span<const double> cleaned);

  Options options_;
  Rng rng_;
  double added_weight_ = 1;
  double removed_weight_ = 1;
};

/// Anything that guesses the next counts from everything seen so far. May keep state: one call per interval, in order.
using PointForecast = std::function<std::vector<double>(std::span<const Interval> past, int horizon)>;
struct NamedForecast {
  std::string name{};
  PointForecast next{};
};

struct PointForecastOptions {
  int history = 12;  ///< intervals a method is fitted on
  int least = 0;     ///< forecasts are rounded to whole machines and clamped to [least, most]
  int most = 32;     ///< what one asks for: more is never held
  std::uint64_t seed = 1;
};
/// Every method above for one pass over one trace. A new method is one more entry.
std::vector<NamedForecast> point_forecasts(const PointForecastOptions& options);

struct ForecastError {
  int origins = 0;
  double mae = 0;            ///< machines
  double normalised_l1 = 0;  ///< mean over origins of sum|error| / sum(count), where a count is not zero
};
/// Rolling origin: at every interval after the first history + 1 with a whole horizon ahead, `next` sees the past only.
ForecastError rolling_error(const PointForecast& next, std::span<const Interval> series, int horizon, int history);

}  // namespace mayfly
