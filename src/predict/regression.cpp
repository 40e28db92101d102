#include "predict/regression.h"

namespace mayfly {

double step_time(const StepTimeFit& fit, double gflops, double tensors, double tflops) {
  return fit.intercept + (fit.per_work * gflops + fit.per_tensor * tensors) / tflops;
}

const StepTimeFit& published_step_time_fit() {
  // fit_step_time over CM-DARE's step_speed.csv (ICDCS 2020, Apache-2.0); tests/accuracy repeats the fit.
  static const StepTimeFit fit{.intercept = -0.0121872,
                               .per_work = 0.229198,
                               .per_tensor = 0.00493365,
                               .batch = 128,
                               .relative_sd = 0.1511,
                               .left_out_mape = 0.1105};
  return fit;
}

Seconds checkpoint_time(const CheckpointFit& fit, double data_mb, double graph_mb) {
  return Seconds(fit.intercept + fit.per_data_mb * data_mb + fit.per_graph_mb * graph_mb);
}

const CheckpointFit& published_checkpoint_fit() {
  // fit_checkpoint_time over CM-DARE's checkpoint.csv (C3 of the specification's list).
  static const CheckpointFit fit{
      .intercept = 3.21867, .per_data_mb = 0.0176086, .per_graph_mb = 0.186405, .mape = 0.0632};
  return fit;
}

}  // namespace mayfly
