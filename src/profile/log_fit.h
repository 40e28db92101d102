#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "job/training_log.h"
#include "predict/loss_fit.h"

// What a training's log teaches: docs/models.md#from-a-log.
namespace mayfly {

inline constexpr double kBytesPerParameter = 4;
/// A curve is fitted to at most about so many points; of more losses, to means over stretches.
inline constexpr std::size_t kMostLosses = 200;

/// Seconds of a step, from what lay between the lines of a log.
struct StepTime {
  Seconds mean{};
  std::optional<Seconds> p10{};  ///< over stretches of a tenth of the log each
  std::optional<Seconds> p90{};
  double relative_sd = 0;  ///< between them; 0: not known
  int intervals = 0;       ///< counted
  int warm_up = 0;         ///< left out at the beginning
  int restarts = 0;        ///< where a step or the clock went back
  int stalls = 0;          ///< left out, as they took several times longer than the others
};

/// Fewer losses than this determine no curve.
inline constexpr std::size_t kLeastLosses = 8;

/// An error says what the log would have to tell. The steps must have been counted.
Result<StepTime> step_time(const TrainingLog& log, const LogScale& scale);

/// Steps that were trained twice count once, as they were the last time; long logs are averaged over stretches.
std::vector<LossPoint> loss_points(const TrainingLog& log, double batch);

/// What the user knows and a log does not say.
struct FromLog {
  std::string file{};
  std::string name{};
  std::string type = "local";
  std::optional<double> batch{};
  std::optional<double> samples{};     ///< of an epoch
  std::optional<double> parameters{};  ///< how many
  bool loss = true;                    ///< false: no curve is wanted
};

/// A profile of one machine of a type, and what it rests on.
struct LogProfile {
  Json profile{};  ///< docs/formats.md#profile
  StepTime step{};
  std::optional<LossFit> fit{};
  std::size_t losses = 0;
  double batch = 0;
  std::vector<std::string> notes{};  ///< what is missing, and what follows from it
};
Result<LogProfile> profile_from_log(TrainingLog log, const FromLog& asked);

}  // namespace mayfly
