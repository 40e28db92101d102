#include "base/least_squares.h"

#include <ceres/ceres.h>
#include <glog/logging.h>

#include <Eigen/Dense>
#include <cmath>

namespace mayfly {

Result<std::vector<double>> linear_least_squares(std::span<const double> rows, std::size_t columns,
                                                 std::span<const double> targets) {
  using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Eigen::Map<const Matrix> a(rows.data(), static_cast<Eigen::Index>(targets.size()),
                                   static_cast<Eigen::Index>(columns));
  const Eigen::Map<const Eigen::VectorXd> b(targets.data(), static_cast<Eigen::Index>(targets.size()));
  const auto decomposed = a.colPivHouseholderQr();
  if (decomposed.rank() < static_cast<Eigen::Index>(columns)) {
    return fail("least squares: {} observations do not determine {} coefficients", targets.size(), columns);
  }
  const Eigen::VectorXd x = decomposed.solve(b);
  return std::vector<double>(x.data(), x.data() + x.size());
}

namespace {

class Residuals {
 public:
  explicit Residuals(const FitProblem& problem) : problem_(&problem) {}
  bool operator()(double const* const* x, double* out) const {
    problem_->evaluate({x[0], problem_->start.size()}, {out, problem_->residuals});
    for (std::size_t i = 0; i < problem_->residuals; ++i) {
      if (!std::isfinite(out[i])) return false;
    }
    return true;
  }

 private:
  const FitProblem* problem_;
};

/// variance * (J^T J)^-1 at the solution; empty where some direction is not determined. (Ceres' own covariance writes
/// to standard error when that happens.)
std::vector<double> covariance_of(const FitProblem& problem, const std::vector<double>& x, double variance) {
  const auto n = static_cast<Eigen::Index>(x.size());
  Eigen::MatrixXd jacobian(static_cast<Eigen::Index>(problem.residuals), n);
  std::vector<double> moved = x;
  std::vector<double> above(problem.residuals);
  std::vector<double> below(problem.residuals);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double step = 1e-6 * std::max(1e-6, std::fabs(x[i]));
    moved[i] = x[i] + step;
    problem.evaluate(moved, above);
    moved[i] = x[i] - step;
    problem.evaluate(moved, below);
    moved[i] = x[i];
    for (std::size_t r = 0; r < above.size(); ++r) {
      jacobian(static_cast<Eigen::Index>(r), static_cast<Eigen::Index>(i)) = (above[r] - below[r]) / (2 * step);
    }
  }
  // Columns are scaled to one length first: coefficients may differ by many orders of magnitude and still be
  // determined.
  const Eigen::VectorXd lengths = jacobian.colwise().norm();
  if (!lengths.allFinite() || lengths.minCoeff() <= 0) return {};
  const Eigen::MatrixXd scaled = jacobian * lengths.cwiseInverse().asDiagonal();
  const Eigen::JacobiSVD<Eigen::MatrixXd> svd(scaled, Eigen::ComputeThinU | Eigen::ComputeThinV);
  constexpr double kDetermined = 1e-7;
  if (svd.singularValues()(n - 1) < kDetermined * svd.singularValues()(0)) return {};
  const Eigen::MatrixXd inverse = lengths.cwiseInverse().asDiagonal() * svd.matrixV() *
                                  svd.singularValues().array().square().inverse().matrix().asDiagonal() *
                                  svd.matrixV().transpose() * lengths.cwiseInverse().asDiagonal();
  std::vector<double> result(x.size() * x.size());
  for (Eigen::Index i = 0; i < n; ++i) {
    for (Eigen::Index j = 0; j < n; ++j) result[static_cast<std::size_t>(i * n + j)] = variance * inverse(i, j);
  }
  return result;
}

}  // namespace

Result<Fit> nonlinear_least_squares(const FitProblem& problem) {
  // What goes wrong is in the result; nothing but cli/ writes to standard error.
  FLAGS_minloglevel = google::GLOG_FATAL;
  Fit fit{.x = problem.start};
  const auto n = static_cast<int>(problem.start.size());
  ceres::Problem ceres_problem;
  auto* cost = new ceres::DynamicNumericDiffCostFunction<Residuals, ceres::CENTRAL>(new Residuals(problem));
  cost->AddParameterBlock(n);
  cost->SetNumResiduals(static_cast<int>(problem.residuals));
  ceres_problem.AddResidualBlock(cost, nullptr, fit.x.data());
  for (int i = 0; i < n; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (!problem.lower.empty()) ceres_problem.SetParameterLowerBound(fit.x.data(), i, problem.lower[at]);
    if (!problem.upper.empty()) ceres_problem.SetParameterUpperBound(fit.x.data(), i, problem.upper[at]);
  }
  ceres::Solver::Options options;
  options.linear_solver_type = ceres::DENSE_QR;
  options.logging_type = ceres::SILENT;
  options.max_num_iterations = 500;
  options.function_tolerance = 1e-14;
  options.parameter_tolerance = 1e-12;
  options.gradient_tolerance = 1e-14;
  ceres::Solver::Summary summary;
  ceres::Solve(options, &ceres_problem, &summary);
  if (!summary.IsSolutionUsable()) return fail("least squares did not converge: {}", summary.message);
  fit.sum_of_squares = 2 * summary.final_cost;
  if (problem.residuals > problem.start.size()) {
    const double freedom = static_cast<double>(problem.residuals - problem.start.size());
    fit.covariance = covariance_of(problem, fit.x, fit.sum_of_squares / freedom);
  }
  return fit;
}

}  // namespace mayfly
