#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "predict/speed.h"

// How wrong the models are on measurements they were not fitted to: docs/models.md#accuracy.
namespace mayfly {

/// Steps per second of 1 to 8 workers, as measured by CM-DARE (ICDCS 2020; batch 128, CIFAR-10, asynchronous).
struct ScalingCurve {
  std::string_view name{};
  int servers = 1;
  double parameters = 0;  ///< bytes
  std::array<double, 8> steps_per_s{};
};
const std::array<ScalingCurve, 12>& cm_dare_curves();

/// A model calibrated on 1, 2 and 8 workers of a curve.
struct Calibration {
  Workload job{};
  Worker worker{};
  ServerPool servers{};
  double steps_per_s(Predictor predictor, int workers) const;
};
Result<Calibration> calibrate(Predictor predictor, const ScalingCurve& curve);

/// Predictions for 3 to 7 workers against the measurements.
struct CurveError {
  std::string_view curve{};
  double mean = 0;     ///< mean of |error|, relative
  double squared = 0;  ///< mean squared logarithm
};
Result<std::vector<CurveError>> held_out_errors(Predictor predictor);

/// The server of the P100 curve of ResNet-32 and the V100's one-worker speed give the V100's curve.
struct Transfer {
  std::array<double, 7> predicted{};  ///< 2 to 8 workers
  std::array<double, 7> measured{};
  double mean = 0;
  double worst = 0;
};
Result<Transfer> v100_transfer();

/// lambdaDNN's observations of whole jobs on functions against the model.
struct FunctionObservation {
  std::string_view job{};  ///< shipped profile
  int functions = 0;
  int memory_mib = 0;
  double epochs = 0;
  double observed = 0;  ///< s
};
const std::array<FunctionObservation, 15>& lambda_observations();

}  // namespace mayfly
