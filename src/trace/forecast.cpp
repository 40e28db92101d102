#include "trace/forecast.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "trace/weather.h"

// Models: docs/models.md#forecast
namespace mayfly {

std::vector<Interval> intervals(const Series& series, Seconds gap, Seconds duration) {
  MAYFLY_CHECK(gap.count() > 0, "intervals have a length");
  // Times are decimal multiples of the gap more often than not; rounding must not move them across a boundary.
  constexpr double kSlack = 1e-9;
  const auto count = static_cast<std::size_t>(std::max(0.0, std::ceil(duration / gap - kSlack)));
  std::vector<Interval> result(count);
  auto change = series.changes.begin();
  int available = 0;
  for (std::size_t k = 0; k < count; ++k) {
    for (; change != series.changes.end() && change->time / gap + kSlack < static_cast<double>(k + 1); ++change) {
      result[k].added += change->added;
      result[k].removed += change->removed;
      available = change->available;
    }
    result[k].available = available;
  }
  return result;
}

std::string_view name(Forecaster method) {
  switch (method) {
    case Forecaster::persistence:
      return "persistence";
    case Forecaster::average:
      return "average";
    case Forecaster::smoothing:
      return "smoothing";
    case Forecaster::holt:
      return "holt";
    case Forecaster::arima:
      return "arima";
  }
  return "";
}

int history_length(int horizon) {
  switch (horizon) {
    case 14:
      return 17;
    case 9:
      return 9;
    case 8:
    case 7:
      return 8;
    default:
      return std::max(horizon, 10);
  }
}

namespace {

std::vector<double> flat(double level, int horizon) {
  return std::vector<double>(static_cast<std::size_t>(horizon), level);
}

/// Exponential smoothing with a damped trend: after each count the level is moved by `rate` of the surprise and the
/// trend by `trend_rate` of it. No trend rate and no damping: simple smoothing.
struct Smoothing {
  double rate = 1;
  double trend_rate = 0;
  double damping = 0;
};
struct Smoothed {
  double level = 0;
  double trend = 0;
  double squared_error = 0;  ///< of the one-step forecasts within the window
};
/// Gives up where the error reaches `most`.
Smoothed smoothed(const Smoothing& by, std::span<const double> window, double most) {
  Smoothed state{.level = window[0], .trend = by.damping > 0 ? window[1] - window[0] : 0};
  for (std::size_t t = 1; t < window.size() && state.squared_error < most; ++t) {
    const double expected = state.level + by.damping * state.trend;
    const double surprise = window[t] - expected;
    state.squared_error += surprise * surprise;
    state.level = expected + by.rate * surprise;
    state.trend = by.damping * state.trend + by.trend_rate * surprise;
  }
  return state;
}

std::vector<double> simple_smoothing(std::span<const double> window, int horizon) {
  Smoothed best{.squared_error = std::numeric_limits<double>::infinity()};
  for (int i = 1; i <= 100; ++i) {
    const Smoothed fit = smoothed({.rate = i / 100.0}, window, best.squared_error);
    if (fit.squared_error < best.squared_error) best = fit;
  }
  return flat(best.level, horizon);
}

std::vector<double> holt(std::span<const double> window, int horizon) {
  if (window.size() < 2) return flat(window.back(), horizon);
  Smoothed best{.squared_error = std::numeric_limits<double>::infinity()};
  double damping = 0;
  for (int i = 1; i <= 20; ++i) {
    for (int j = 0; j <= i; ++j) {
      // Dampings of 0.8 to 0.98, the range Hyndman and Athanasopoulos (Forecasting, 8.2) recommend.
      for (const double d : {0.8, 0.86, 0.92, 0.98}) {
        const Smoothed fit =
            smoothed({.rate = i / 20.0, .trend_rate = j / 20.0, .damping = d}, window, best.squared_error);
        if (fit.squared_error >= best.squared_error) continue;
        best = fit;
        damping = d;
      }
    }
  }
  std::vector<double> result;
  double weight = 0;
  for (int k = 1; k <= horizon; ++k) {
    weight += std::pow(damping, k);
    result.push_back(best.level + weight * best.trend);
  }
  return result;
}

/// AR(1) with a mean, of differences w: w_t - mean = phi (w_{t-1} - mean) + noise.
struct Autoregression {
  double phi = 0;
  double mean = 0;
  double badness = 0;  ///< minus the log-likelihood with the noise's variance at its best, but for a constant
};

/// The best mean for a given phi has a closed form, which leaves a search in one dimension.
Autoregression autoregression(double phi, std::span<const double> w) {
  const double n = static_cast<double>(w.size());
  const double a = 1 - phi * phi;
  double weighted = a * w[0];
  for (std::size_t t = 1; t < w.size(); ++t) weighted += (1 - phi) * (w[t] - phi * w[t - 1]);
  const double mean = weighted / (a + (n - 1) * (1 - phi) * (1 - phi));
  double squares = a * (w[0] - mean) * (w[0] - mean);
  for (std::size_t t = 1; t < w.size(); ++t) {
    const double noise = (w[t] - mean) - phi * (w[t - 1] - mean);
    squares += noise * noise;
  }
  constexpr double kLeast = 1e-12;  // a perfect fit has no likelihood; counts are whole, so this is far below any other
  return {.phi = phi, .mean = mean, .badness = n / 2 * std::log(std::max(squares, kLeast) / n) - std::log(a) / 2};
}

Autoregression best_autoregression(std::span<const double> w) {
  // The likelihood of a dozen differences can have two peaks: a grid finds the higher, golden sections its top.
  constexpr double kMost = 0.999;
  constexpr int kGrid = 100;
  const auto grid = [](int i) { return kMost * i / kGrid; };
  int at = -kGrid;
  Autoregression best = autoregression(grid(at), w);
  for (int i = -kGrid + 1; i <= kGrid; ++i) {
    const Autoregression fit = autoregression(grid(i), w);
    if (fit.badness >= best.badness) continue;
    best = fit;
    at = i;
  }
  double low = grid(std::max(at - 1, -kGrid));
  double high = grid(std::min(at + 1, kGrid));
  constexpr double kGolden = 0.6180339887498949;
  while (high - low > 1e-8) {
    const double left = high - kGolden * (high - low);
    const double right = low + kGolden * (high - low);
    const bool falls = autoregression(left, w).badness <= autoregression(right, w).badness;
    (falls ? high : low) = falls ? right : left;
  }
  return autoregression((low + high) / 2, w);
}

std::vector<double> arima(std::span<const double> window, int horizon) {
  if (window.size() < 4) return flat(window.back(), horizon);
  std::vector<double> w(window.size() - 1);
  for (std::size_t t = 0; t < w.size(); ++t) w[t] = window[t + 1] - window[t];
  // A straight line fits perfectly with every phi; it goes on.
  const bool straight = std::all_of(w.begin(), w.end(), [&](double step) { return step == w[0]; });
  const Autoregression fit = straight ? Autoregression{.mean = w[0]} : best_autoregression(w);
  std::vector<double> result;
  double count = window.back();
  double surplus = w.back() - fit.mean;
  for (int k = 0; k < horizon; ++k) {
    surplus *= fit.phi;
    count += fit.mean + surplus;
    result.push_back(count);
  }
  return result;
}

}  // namespace

std::vector<double> forecast(Forecaster method, std::span<const double> window, int horizon) {
  MAYFLY_CHECK(!window.empty() && horizon > 0, "a forecast needs a past and a future");
  switch (method) {
    case Forecaster::persistence:
      break;
    case Forecaster::average:
      return flat(std::accumulate(window.begin(), window.end(), 0.0) / static_cast<double>(window.size()), horizon);
    case Forecaster::smoothing:
      return simple_smoothing(window, horizon);
    case Forecaster::holt:
      return holt(window, horizon);
    case Forecaster::arima:
      return arima(window, horizon);
  }
  return flat(window.back(), horizon);
}

namespace {

/// Counts beyond this are too many for a distribution over them.
constexpr int kMostCounts = 1024;
/// Intervals after an event that count as its aftermath.
constexpr int kBurstMemory = 3;

/// Of a distribution over 0, 1, 2, ...
int median(const std::vector<double>& probabilities) {
  double below = 0;
  for (std::size_t count = 0; count < probabilities.size(); ++count) {
    below += probabilities[count];
    if (below >= 0.5) return static_cast<int>(count);
  }
  return static_cast<int>(probabilities.size()) - 1;
}

}  // namespace

std::vector<NamedForecast> point_forecasts(const PointForecastOptions& options) {
  std::vector<NamedForecast> all;
  for (const Forecaster method : kForecasters) {
    const auto next = [method, options](std::span<const Interval> past, int horizon) {
      std::vector<double> window;
      for (const Interval& interval : past.last(std::min(past.size(), static_cast<std::size_t>(options.history))))
        window.push_back(interval.available);
      std::vector<double> counts = forecast(method, window, horizon);
      for (double& count : counts) count = std::clamp<double>(std::nearbyint(count), options.least, options.most);
      return counts;
    };
    all.push_back({std::string(name(method)), next});
  }
  ParcaeForecast parcae(
      {.history = options.history, .least = options.least, .most = options.most, .seed = options.seed});
  all.push_back({"parcae", [parcae](std::span<const Interval> past, int horizon) mutable {
                   std::vector<double> counts;
                   for (const Interval& interval : parcae.next(past, horizon)) counts.push_back(interval.available);
                   return counts;
                 }});
  if (options.most <= kMostCounts) {
    Weather weather(options.most, kBurstMemory);
    std::size_t seen = 1;  // the first machines are the start, not an arrival
    all.push_back({"weather", [weather, seen](std::span<const Interval> past, int horizon) mutable {
                     for (; seen < past.size(); ++seen)
                       weather.observe(past[seen - 1].available, {past[seen].added, past[seen].removed});
                     std::vector<double> counts;
                     for (const auto& likely : weather.distribution(past.back().available, horizon))
                       counts.push_back(median(likely));
                     return counts;
                   }});
  }
  return all;
}

ForecastError rolling_error(const PointForecast& next, std::span<const Interval> series, int horizon, int history) {
  ForecastError error;
  int with_machines = 0;
  const auto ahead = static_cast<std::size_t>(horizon);
  for (auto i = static_cast<std::size_t>(history) + 1; i + ahead <= series.size(); ++i) {
    const std::vector<double> guess = next(series.first(i), horizon);
    double off = 0;
    double counted = 0;
    for (std::size_t k = 0; k < ahead; ++k) {
      off += std::abs(guess[k] - series[i + k].available);
      counted += series[i + k].available;
    }
    ++error.origins;
    error.mae += off / horizon;
    if (counted == 0) continue;
    ++with_machines;
    error.normalised_l1 += off / counted;
  }
  if (error.origins > 0) error.mae /= error.origins;
  if (with_machines > 0) error.normalised_l1 /= with_machines;
  return error;
}

}  // namespace mayfly
