#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "job/log_line.h"

namespace mayfly {

/// What a training has left behind. docs/formats.md#training-log
struct TrainingLog {
  std::string kind{};                ///< "csv", "trainer_state" or "lines"
  std::vector<LogPoint> points{};    ///< in the file's order; each says something
  std::optional<Seconds> runtime{};  ///< of the whole training, as its trainer measured it
  std::optional<double> batch{};     ///< samples of a step
  std::optional<double> steps{};     ///< of the whole training
};

/// A CSV file with a heading (TensorBoard, Lightning, wandb), a trainer_state.json, or lines. An error names the line.
Result<TrainingLog> parse_training_log(std::string_view text, const std::string& file);

/// How a log counts.
struct LogScale {
  std::optional<double> batch{};    ///< samples of a step
  std::optional<double> samples{};  ///< of an epoch
};

/// Gives each point its step since the beginning, where it counts by the epoch; samples become steps with `batch`.
/// What cannot be counted keeps no step. `scale.samples` is set where the log tells.
void count_steps(TrainingLog& log, LogScale& scale);

}  // namespace mayfly
