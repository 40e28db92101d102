// Prints the error tables of docs/models.md (between its markers). The tests compare the two.
#include "accuracy/accuracy.h"

#include <fmt/core.h>

#include <cmath>

#include "predict/serverless.h"
#include "support/problems.h"

using namespace mayfly;

int main() {
  const std::array predictors{Predictor::queue, Predictor::spotdnn, Predictor::cynthia, Predictor::additive};
  std::vector<std::vector<CurveError>> errors;
  for (const Predictor predictor : predictors) {
    auto made = held_out_errors(predictor);
    if (!made) {
      fmt::print(stderr, "{}\n", made.error().message);
      return 1;
    }
    errors.push_back(std::move(*made));
  }
  fmt::print("Mean error in percent at 3 to 7 workers, calibrated on 1, 2 and 8:\n\n| curve |");
  for (const Predictor predictor : predictors) fmt::print(" {} |", name(predictor));
  fmt::print("\n| --- | --- | --- | --- | --- |\n");
  for (std::size_t c = 0; c < cm_dare_curves().size(); ++c) {
    fmt::print("| {} |", cm_dare_curves()[c].name);
    for (const auto& column : errors) fmt::print(" {:.2f} |", 100 * column[c].mean);
    fmt::print("\n");
  }
  const auto row = [&](const char* label, auto value) {
    fmt::print("| {} |", label);
    for (const auto& column : errors) fmt::print(" {:.2f} |", 100 * value(column));
    fmt::print("\n");
  };
  row("**mean**", [](const auto& column) {
    double sum = 0;
    for (const auto& e : column) sum += e.mean / static_cast<double>(column.size());
    return sum;
  });
  row("**worst curve**", [](const auto& column) {
    double worst = 0;
    for (const auto& e : column) worst = std::max(worst, e.mean);
    return worst;
  });
  row("**root mean square, log**", [](const auto& column) {
    double sum = 0;
    for (const auto& e : column) sum += e.squared / static_cast<double>(column.size());
    return std::sqrt(sum);
  });
  const auto transfer = v100_transfer();
  if (!transfer) return 1;
  fmt::print(
      "\nV100, ResNet-32, from the P100's server and one V100's speed (steps/s):\n\n| workers | measured | queue | "
      "error % |\n| --- | --- | --- | --- |\n");
  for (std::size_t i = 0; i < transfer->measured.size(); ++i) {
    fmt::print("| {} | {:.2f} | {:.2f} | {:+.1f} |\n", i + 2, transfer->measured[i], transfer->predicted[i],
               100 * (transfer->predicted[i] / transfer->measured[i] - 1));
  }
  fmt::print("| **mean** | | | {:.2f} |\n", 100 * transfer->mean);
  fmt::print(
      "\nFunctions, whole jobs observed by lambdaDNN's authors:\n\n| job | functions | MiB | observed s | model s | "
      "error % |\n| --- | --- | --- | --- | --- | --- |\n");
  const auto catalog = support::shipped_catalog("default");
  double squared = 0;
  double absolute = 0;
  for (const auto& o : lambda_observations()) {
    const auto profile = support::shipped_profile(std::string(o.job));
    const auto p = serverless_prediction(profile, *catalog.find_function("aws-lambda"), {o.functions, o.memory_mib},
                                         o.epochs, {0});
    const double ratio = p.time.count() / o.observed;
    squared += std::log(ratio) * std::log(ratio) / static_cast<double>(lambda_observations().size());
    absolute += std::fabs(ratio - 1) / static_cast<double>(lambda_observations().size());
    fmt::print("| {} | {} | {} | {:.2f} | {:.2f} | {:+.1f} |\n", o.job, o.functions, o.memory_mib, o.observed,
               p.time.count(), 100 * (ratio - 1));
  }
  fmt::print("| **mean** | | | | | {:.2f} |\n| **root mean square, log** | | | | | {:.2f} |\n", 100 * absolute,
             100 * std::sqrt(squared));
  return 0;
}
