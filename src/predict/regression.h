#pragma once

#include "base/units.h"

// What a job costs where it was never measured: docs/models.md#unmeasured-machines.
namespace mayfly {

/// step = intercept + per_work * gflops / tflops + per_tensor * tensors / tflops
struct StepTimeFit {
  double intercept = 0;
  double per_work = 0;
  double per_tensor = 0;
  double batch = 0;        ///< samples per GPU at which the observations were taken
  double relative_sd = 0;  ///< leaving one network out
  double left_out_mape = 0;
};

/// `gflops` in units of 2^30, as the profiler that produced the data counts them.
double step_time(const StepTimeFit& fit, double gflops, double tensors, double tflops);

/// Fitted to CM-DARE's 520 measurements of 20 CNNs on K80 and P100 (batch 128).
const StepTimeFit& published_step_time_fit();

/// Time to write one checkpoint to object storage, from the sizes of its data and graph files.
struct CheckpointFit {
  double intercept = 0;  ///< s
  double per_data_mb = 0;
  double per_graph_mb = 0;
  double mape = 0;
};
Seconds checkpoint_time(const CheckpointFit& fit, double data_mb, double graph_mb);
/// Fitted to CM-DARE's 100 checkpoints.
const CheckpointFit& published_checkpoint_fit();

}  // namespace mayfly
