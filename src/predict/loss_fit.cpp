#include "predict/loss_fit.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/file.h"
#include "base/least_squares.h"
#include "base/normal.h"
#include "base/text.h"

namespace mayfly {
namespace {

/// Which coefficients a form has, in the order of LossFit::parameters, and what the log can determine.
struct FittedForm {
  LossCurve::Form form = LossCurve::Form::common_start;
  bool batch_varies = false;
  bool workers_vary = false;  ///< with the same batch, which tells what more of them cost

  std::size_t size() const {
    const std::size_t own = form == LossCurve::Form::cynthia ? 2 : 3;
    return own + (slope() || power() ? 1 : 0);
  }
  bool slope() const { return batch_varies && form != LossCurve::Form::cynthia; }
  bool power() const { return workers_vary && !batch_varies && form == LossCurve::Form::common_start; }
  /// cynthia: scale, floor. spotdnn: scale, floor, shift[, slope]. common-start: scale, floor, initial - floor[,
  /// slope or power].
  LossCurve curve(std::span<const double> x) const {
    LossCurve made{.form = form, .scale = x[0], .floor = x[1]};
    if (form == LossCurve::Form::spotdnn) made.shift = x[2];
    if (form == LossCurve::Form::common_start) made.initial = x[1] + x[2];
    if (slope()) made.batch_slope = x[3];
    if (power()) made.workers_power = x[3];
    return made;
  }
};

LossConditions conditions(const LossPoint& point, Sync sync) { return {point.batch, point.workers, point.cc, sync}; }

FitProblem problem_for(const FittedForm& shape, std::span<const LossPoint> points, Sync sync) {
  const auto by_loss = [](const LossPoint& a, const LossPoint& b) { return a.loss < b.loss; };
  const auto [lowest, highest] = std::minmax_element(points.begin(), points.end(), by_loss);
  const double start = std::max(highest->loss - lowest->loss, 1e-6);
  const double last = std::max_element(points.begin(), points.end(), [](const auto& a, const auto& b) {
                        return a.step < b.step;
                      })->step;
  const double spread = std::sqrt(static_cast<double>(points.front().workers));
  // Half-way down after a tenth of the log: only the right order of magnitude matters.
  const double scale = start * std::max(last, 1.0) / 10 / spread;
  FitProblem problem{.start = {scale, lowest->loss / 2, start, 0},
                     .lower = {1e-12, -1e6, 1e-9, -1e12},
                     .upper = {1e15, 1e6, 1e12, 1e12}};
  // A floor above the lowest loss seen contradicts the log.
  problem.upper[1] = lowest->loss;
  if (shape.form == LossCurve::Form::spotdnn) problem.start[2] = std::max(last / 10, 1.0);
  if (shape.power()) {
    problem.start[3] = 0.25;
    problem.lower[3] = 0;
    problem.upper[3] = 1;
  }
  problem.start.resize(shape.size());
  problem.lower.resize(shape.size());
  problem.upper.resize(shape.size());
  problem.residuals = points.size();
  problem.evaluate = [shape, points, sync](std::span<const double> x, std::span<double> out) {
    const LossCurve curve = shape.curve(x);
    for (std::size_t i = 0; i < points.size(); ++i) {
      out[i] = loss_after(curve, conditions(points[i], sync), points[i].step) - points[i].loss;
    }
  };
  return problem;
}

}  // namespace

Result<LossFit> fit_loss(LossCurve::Form form, std::span<const LossPoint> points, Sync sync) {
  std::set<double> batches;
  std::set<int> workers;
  for (const LossPoint& point : points) {
    batches.insert(point.batch);
    workers.insert(point.workers);
  }
  const FittedForm shape{.form = form, .batch_varies = batches.size() > 1, .workers_vary = workers.size() > 1};
  if (points.size() <= shape.size()) {
    return fail("{} points of a loss curve do not determine its {} coefficients", points.size(), shape.size());
  }
  const auto solved = nonlinear_least_squares(problem_for(shape, points, sync));
  if (!solved) return unexpected(solved.error());
  LossFit fit{.curve = shape.curve(solved->x), .parameters = solved->x, .covariance = solved->covariance};
  fit.residual_sd = std::sqrt(solved->sum_of_squares / static_cast<double>(points.size() - shape.size()));
  const LossPoint& last =
      *std::max_element(points.begin(), points.end(), [](const auto& a, const auto& b) { return a.step < b.step; });
  const auto band = loss_band(fit, conditions(last, sync), last.step);
  // Above its floor the loss falls as 1 / steps, so relative errors of the one are those of the other.
  const double above = band.middle - fit.curve.floor;
  fit.curve.relative_sd = above > 0 ? (band.p90 - band.p10) / 2 / kTenthAbove / above : 0;
  return fit;
}

LossBand loss_band(const LossFit& fit, const LossConditions& at, double steps) {
  const std::size_t n = fit.parameters.size();
  const bool power = fit.curve.workers_power.has_value();
  const FittedForm shape{.form = fit.curve.form, .batch_varies = n == 4 && !power, .workers_vary = power};
  const auto value = [&](std::span<const double> x) { return loss_after(shape.curve(x), at, steps); };
  LossBand band{.middle = loss_after(fit.curve, at, steps)};
  double variance = fit.residual_sd * fit.residual_sd;
  if (!fit.covariance.empty()) {
    // Delta method: the gradient of the curve with respect to its coefficients, through their covariance.
    std::vector<double> gradient(n);
    for (std::size_t i = 0; i < n; ++i) {
      auto x = fit.parameters;
      const double h = 1e-5 * std::max(1e-6, std::fabs(x[i]));
      x[i] += h;
      const double above = value(x);
      x[i] -= 2 * h;
      gradient[i] = (above - value(x)) / (2 * h);
    }
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) variance += gradient[i] * gradient[j] * fit.covariance[i * n + j];
    }
  }
  const double half = kTenthAbove * std::sqrt(std::max(0.0, variance));
  band.p10 = band.middle - half;
  band.p90 = band.middle + half;
  return band;
}

Result<std::vector<LossPoint>> parse_loss_log(std::string_view text, const std::string& file) {
  std::vector<LossPoint> points;
  std::vector<std::string> columns;
  int line_number = 0;
  for (const auto line : split(text, '\n')) {
    ++line_number;
    if (trimmed(line).empty()) continue;
    const auto cells = split(line, ',');
    if (columns.empty()) {
      for (const auto cell : cells) columns.emplace_back(trimmed(cell));
      for (const char* wanted : {"step", "loss"}) {
        if (std::find(columns.begin(), columns.end(), wanted) == columns.end())
          return fail("{}:{}: no column '{}' in the heading", file, line_number, wanted);
      }
      continue;
    }
    if (cells.size() != columns.size())
      return fail("{}:{}: {} cells, want {}", file, line_number, cells.size(), columns.size());
    LossPoint point;
    for (std::size_t c = 0; c < cells.size(); ++c) {
      const bool known =
          columns[c] == "step" || columns[c] == "loss" || columns[c] == "batch" || columns[c] == "workers";
      if (!known) continue;
      const auto number = parse_number(trimmed(cells[c]));
      constexpr double kMost = 1e15;
      if (!number || std::fabs(*number) > kMost || (columns[c] != "loss" && *number < 0))
        return fail("{}:{}: {}: '{}', want a number", file, line_number, columns[c], trimmed(cells[c]));
      if (columns[c] == "step") point.step = *number;
      if (columns[c] == "loss") point.loss = *number;
      if (columns[c] == "batch") point.batch = *number;
      if (columns[c] == "workers") point.workers = static_cast<int>(std::clamp(*number, 1.0, 1e6));
    }
    points.push_back(point);
  }
  if (columns.empty()) return fail("{}:1: empty file", file);
  return points;
}

Result<LossFit> fit_loss_log(const std::filesystem::path& path, Sync sync) {
  const auto text = load_text(path);
  if (!text) return unexpected(text.error());
  const auto points = parse_loss_log(*text, path.string());
  if (!points) return unexpected(points.error());
  auto fit = fit_loss(LossCurve::Form::common_start, *points, sync);
  if (!fit) return fail("{}: {}", path.string(), fit.error().message);
  return fit;
}

}  // namespace mayfly
