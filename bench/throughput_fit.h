#pragma once

#include <map>
#include <string>
#include <vector>

#include "throughput_rows.h"

// The formula of src/predict/gpu_ratio.cpp with its coefficients as variables, so that they can be fitted anew without
// some of the measurements. Model: docs/models.md#gpus. With the shipped coefficients both say the same: the bench
// checks that on every pair.
namespace mayfly::bench {

/// What of a GPU and its cell the formula looks at, as logarithms against the A100 80 GB.
struct Point {
  const Cell* cell = nullptr;
  const Speed* speed = nullptr;
  std::string factor{};   ///< key of Formula::factors
  std::size_t group = 0;  ///< of networks and precisions with shares of their own; kGroups: of none
  double compute = 0;     ///< time
  double memory = 0;      ///< time
  double cache = 0;
  double vectors = 0;
  double power = 0;
};
inline constexpr std::size_t kGroups = 8;
/// Those of a cell stand together.
std::vector<Point> points_of(const std::vector<Cell>& cells);

struct Formula {
  /// ln of the shares of compute and memory against the fixed one; exponents of batch, power, cache and vector units;
  /// then for each group how far its own two shares are from the first.
  std::vector<double> x{};
  std::map<std::string, double, std::less<>> factors{};  ///< ln of what was measured of GPUs beyond it
};
Formula shipped_formula(const Catalog& gpus);
/// Whether a larger batch on one GPU explains part of its speed; gpu_ratio is not told of batches.
enum class Batches { ignored, fitted };
Result<Formula> fitted_formula(const std::vector<Point>& points, Batches batches);

/// ln of the speed, up to a constant of the cell.
double log_speed(const Formula& formula, const Point& point);

}  // namespace mayfly::bench
