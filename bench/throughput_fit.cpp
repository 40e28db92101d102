#include "throughput_fit.h"

#include <algorithm>
#include <cmath>

#include "base/least_squares.h"

namespace mayfly::bench {
namespace {

enum At : std::size_t { kCompute, kMemory, kBatch, kPower, kCache, kVectors, kOwn };
constexpr std::size_t kSize = kOwn + 2 * kGroups;

std::string factor_key(const Gpu& gpu, bool half) { return gpu.model + (half ? "/half" : "/full"); }

double peak_of(const Gpu& gpu, bool half) {
  const double full = gpu.tflops_fp32.value_or(0);
  if (half) return gpu.architecture == "pascal" ? full : gpu.tflops_fp16.value_or(full);
  return gpu.tflops_tf32.value_or(full);
}

Point point_of(const Cell& cell, const Speed& speed) {
  const Gpu& gpu = *speed.gpu;
  const auto network = static_cast<std::size_t>(cell.recipe.network);
  const bool own = cell.recipe.network != Network::unknown && cell.recipe.network != Network::recommender;
  return {.cell = &cell,
          .speed = &speed,
          .factor = factor_key(gpu, cell.half),
          .group = own ? 2 * (network - 1) + (cell.half ? 1 : 0) : kGroups,
          .compute = std::log((cell.half ? 312 : 156) / peak_of(gpu, cell.half)),
          .memory = std::log(2039e9 / gpu.memory_rate->value),
          .cache = std::log(std::clamp(gpu.l2_mb.value_or(40), 20.0, 100.0) / 40),
          .vectors = std::log(std::clamp(gpu.tflops_fp32.value_or(19.5), 8.0, 90.0) / 19.5),
          .power = std::log(std::clamp(gpu.power_w.value_or(400), 150.0, 700.0) / 400)};
}

double log_speed(std::span<const double> x, const Point& point) {
  const bool own = point.group < kGroups;
  const double compute = std::exp(x[kCompute] + (own ? x[kOwn + 2 * point.group] : 0));
  const double memory = std::exp(x[kMemory] + (own ? x[kOwn + 2 * point.group + 1] : 0));
  const double time =
      (compute * std::exp(point.compute) + memory * std::exp(point.memory - x[kCache] * point.cache) + 1) /
      (compute + memory + 1);
  return -std::log(time) + x[kVectors] * point.vectors + x[kPower] * point.power + x[kBatch] * point.speed->log_batch;
}

/// Takes from each value the mean of its cell.
void centre(const std::vector<Point>& points, std::span<double> values) {
  for (std::size_t begin = 0; begin < points.size();) {
    std::size_t end = begin;
    double sum = 0;
    for (; end < points.size() && points[end].cell == points[begin].cell; ++end) sum += values[end];
    for (std::size_t i = begin; i < end; ++i) values[i] -= sum / static_cast<double>(end - begin);
    begin = end;
  }
}

/// Far from the others a value counts less: the square of the result is the soft L1 loss.
double softened(double residual) {
  constexpr double kScale = 0.15;
  const double ratio = residual / kScale;
  return std::copysign(kScale * std::sqrt(2 * (std::sqrt(1 + ratio * ratio) - 1)), residual);
}

/// Means by GPU of what the formula leaves, drawn to 0 where there are few: sum / (n + 3).
std::map<std::string, double, std::less<>> factors_of(const std::vector<Point>& points,
                                                      const std::vector<double>& left) {
  constexpr double kPrior = 3;
  constexpr int kRounds = 30;
  std::map<std::string, double, std::less<>> factors;
  std::vector<double> rest(points.size());
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t i = 0; i < points.size(); ++i) rest[i] = left[i] - factors[points[i].factor];
    centre(points, rest);
    std::map<std::string, Weighted, std::less<>> sums;
    for (std::size_t i = 0; i < points.size(); ++i) {
      Weighted& sum = sums.try_emplace(points[i].factor, Weighted{.weight = kPrior}).first->second;
      sum.value += rest[i] + factors[points[i].factor];
      ++sum.weight;
    }
    for (const auto& [key, sum] : sums) factors[key] = sum.value / sum.weight;
  }
  return factors;
}

}  // namespace

std::vector<Point> points_of(const std::vector<Cell>& cells) {
  std::vector<Point> points;
  for (const Cell& cell : cells) {
    for (const Speed& speed : cell.speeds) points.push_back(point_of(cell, speed));
  }
  return points;
}

Formula shipped_formula(const Catalog& gpus) {
  struct Shares {
    double compute = 0, memory = 0, fixed = 0;
  };
  constexpr Shares kAll{0.1637, 0.4293, 0.4070};
  constexpr std::array<Shares, kGroups> kGrouped{{{0.0723, 0.4802, 0.4475},
                                                  {0.1474, 0.4056, 0.4470},
                                                  {0.2530, 0.3961, 0.3509},
                                                  {0.1609, 0.4221, 0.4170},
                                                  {0.2088, 0.4098, 0.3814},
                                                  {0.1850, 0.4231, 0.3919},
                                                  {0.1713, 0.4214, 0.4074},
                                                  {0.1563, 0.4438, 0.3999}}};
  Formula formula{
      .x = {std::log(kAll.compute / kAll.fixed), std::log(kAll.memory / kAll.fixed), 0, 0.105, 0.204, 0.125}};
  for (const Shares& own : kGrouped) {
    formula.x.push_back(std::log(own.compute / own.fixed) - formula.x[kCompute]);
    formula.x.push_back(std::log(own.memory / own.fixed) - formula.x[kMemory]);
  }
  for (const Gpu& gpu : gpus.gpus) {
    if (!gpu.measured) continue;
    if (gpu.measured->half) formula.factors[factor_key(gpu, true)] = std::log(*gpu.measured->half);
    if (gpu.measured->full) formula.factors[factor_key(gpu, false)] = std::log(*gpu.measured->full);
  }
  return formula;
}

Result<Formula> fitted_formula(const std::vector<Point>& points, Batches batches) {
  FitProblem problem{.start = {-0.8, 0.1, 0.1, 0.1, 0.2, 0.13}};
  problem.start.resize(kSize);
  problem.residuals = points.size() + kSize - kBatch;
  const auto left = [&](std::span<const double> x, std::span<double> out) {
    for (std::size_t i = 0; i < points.size(); ++i) {
      const double batch = batches == Batches::fitted ? 0 : x[kBatch] * points[i].speed->log_batch;
      out[i] = points[i].speed->log_speed - log_speed(x, points[i]) + batch;
    }
    centre(points, out.first(points.size()));
  };
  problem.evaluate = [&](std::span<const double> x, std::span<double> out) {
    left(x, out);
    // Exponents near 0 and groups near the whole, unless the measurements say otherwise.
    for (std::size_t i = kBatch; i < kSize; ++i) out[points.size() + i - kBatch] = (i < kOwn ? 0.5 : 1) * x[i];
    for (double& one : out) one = softened(one);
  };
  auto solved = nonlinear_least_squares(problem);
  if (!solved) return unexpected(solved.error());
  if (batches == Batches::ignored) solved->x[kBatch] = 0;
  std::vector<double> rest(points.size());
  left(solved->x, rest);
  return Formula{.x = solved->x, .factors = factors_of(points, rest)};
}

double log_speed(const Formula& formula, const Point& point) {
  const auto factor = formula.factors.find(point.factor);
  return log_speed(formula.x, point) + (factor == formula.factors.end() ? 0 : factor->second);
}

}  // namespace mayfly::bench
