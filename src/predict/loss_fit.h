#pragma once

#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "predict/loss.h"

// Fitting loss curves to training logs: docs/models.md#loss.
namespace mayfly {

/// One line of a training log.
struct LossPoint {
  double step = 0;
  double loss = 0;
  double batch = 0;
  int workers = 1;
  double cc = 0;
};

struct LossFit {
  LossCurve curve{};
  double residual_sd = 0;            ///< of the loss
  std::vector<double> parameters{};  ///< as fitted: docs/models.md#loss
  std::vector<double> covariance{};  ///< of them, row by row; empty where the log does not determine them
};

/// Least squares in the loss. Needs more points than coefficients; coefficients that the log cannot tell apart (one
/// batch size, one number of workers) are not fitted. The curve's relative_sd is set from the band at the last step.
Result<LossFit> fit_loss(LossCurve::Form form, std::span<const LossPoint> points, Sync sync);

/// Loss at a step with the band 8 of 10 observations should fall into; extrapolation widens it.
struct LossBand {
  double middle = 0;
  double p10 = 0;
  double p90 = 0;
};
LossBand loss_band(const LossFit& fit, const LossConditions& at, double steps);

/// CSV with a heading; columns step and loss, and batch and workers where they are known.
Result<std::vector<LossPoint>> parse_loss_log(std::string_view text, const std::string& file);
/// Reads the log and fits mayfly's own form (common-start).
Result<LossFit> fit_loss_log(const std::filesystem::path& path, Sync sync);

}  // namespace mayfly
