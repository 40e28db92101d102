#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/result.h"

namespace mayfly {

/// Coefficients x that minimise |A x - b|; `rows` is A row by row. Fails when A has not full column rank.
Result<std::vector<double>> linear_least_squares(std::span<const double> rows, std::size_t columns,
                                                 std::span<const double> targets);

struct FitProblem {
  std::vector<double> start{};
  std::vector<double> lower{};  ///< empty: unbounded
  std::vector<double> upper{};
  std::size_t residuals = 0;
  /// Fills `out` (size `residuals`) for parameters `x`.
  std::function<void(std::span<const double> x, std::span<double> out)> evaluate{};
};
struct Fit {
  std::vector<double> x{};
  double sum_of_squares = 0;
  /// Covariance of x, row by row, from the residuals' own scatter; empty where it is not identified.
  std::vector<double> covariance{};
};
/// Bounded non-linear least squares (Ceres, trust region, numeric derivatives). Fails when it does not converge.
Result<Fit> nonlinear_least_squares(const FitProblem& problem);

}  // namespace mayfly
