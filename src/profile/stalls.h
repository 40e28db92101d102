#pragma once

#include <functional>
#include <string>

#include "base/json.h"
#include "predict/advice.h"
#include "predict/stalls.h"
#include "profile/workshop.h"

// Where a job's time goes, measured by what differs: docs/profiling.md#stalls.
namespace mayfly {

struct StallQuestion {
  Workshop::Options shop{};  ///< its workers are the devices of one machine
  int batch = 32;            ///< samples of one device's step
  Seconds time{60};          ///< for everything
  /// Between machines; with it the same devices are also measured as if each stood in a machine of its own.
  std::optional<BytesPerSecond> network{};
  std::function<void(double done)> progress{};
};

/// What the machine's stages do in a step of all devices, besides what training waits for.
struct StageTimes {
  double prep_s = 0;   ///< a step's samples on all prep threads; what is not stall is hidden behind computing
  double fetch_s = 0;  ///< a step's samples from storage
};

struct StallReport {
  int devices = 1;
  int batch = 0;
  int rounds = 0;
  int steps = 0;  ///< of each segment
  Stalls stalls{};
  StageTimes busy{};
  DataPath path{};           ///< of the machine, as the job's loader is set
  bool interrupted = false;  ///< fewer rounds than time would have allowed
};

/// Rounds of short segments, one of each condition, until the time is over; at least one, unless a signal came before
/// it was done: then there are none, and nothing but `rounds` and `interrupted` means anything.
Result<StallReport> find_stalls(const StallQuestion& question);

/// `stalls` of docs/formats.md#profile.
Json stalls_json(const StallReport& report);
/// The rates of the stages, and what of them is hidden.
Json path_json(const StallReport& report);

}  // namespace mayfly
