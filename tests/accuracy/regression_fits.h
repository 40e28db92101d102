#pragma once

#include <span>

#include "base/result.h"
#include "predict/regression.h"

// Where the constants of predict/regression.cpp come from: docs/models.md#unmeasured-machines.
namespace mayfly {

/// One network on one GPU. `gflops` in units of 2^30, as the profiler that produced the data counts them.
struct StepObservation {
  double gflops = 0;
  double tensors = 0;
  double tflops = 0;
  double step = 0;  ///< s
  int network = 0;  ///< which network, for leaving one out
};
/// Ordinary least squares, with the error of predicting each network from the others. Needs two networks or more.
Result<StepTimeFit> fit_step_time(std::span<const StepObservation> observations, double batch);

struct CheckpointObservation {
  double data_mb = 0;
  double graph_mb = 0;
  double time = 0;  ///< s
};
Result<CheckpointFit> fit_checkpoint_time(std::span<const CheckpointObservation> observations);

}  // namespace mayfly
