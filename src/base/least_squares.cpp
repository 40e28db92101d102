#include "base/least_squares.h"

#include <ceres/ceres.h>

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

std::vector<double> covariance_of(ceres::Problem& ceres_problem, const std::vector<double>& x, double variance) {
  ceres::Covariance::Options options;
  options.algorithm_type = ceres::DENSE_SVD;
  ceres::Covariance covariance(options);
  const std::vector<std::pair<const double*, const double*>> blocks{{x.data(), x.data()}};
  if (!covariance.Compute(blocks, &ceres_problem)) return {};
  std::vector<double> result(x.size() * x.size());
  if (!covariance.GetCovarianceBlock(x.data(), x.data(), result.data())) return {};
  for (double& entry : result) entry *= variance;
  return result;
}

}  // namespace

Result<Fit> nonlinear_least_squares(const FitProblem& problem) {
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
    fit.covariance = covariance_of(ceres_problem, fit.x, fit.sum_of_squares / freedom);
  }
  return fit;
}

}  // namespace mayfly
