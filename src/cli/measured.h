#pragma once

#include <string>

#include "profile/measure.h"
#include "profile/stalls.h"

namespace mayfly::cli {

/// Flags of `profile JOB.yaml`.
struct MeasureFlags {
  std::string job{};
  std::string time = "60s";
  std::string type = "local";
  std::optional<int> workers{};
  std::string catalog{};
  std::optional<double> memory_gb{};  ///< of a device that batches must fit
};

/// Flags of `profile JOB.yaml --stalls`.
struct StallFlags {
  bool wanted = false;
  std::string network{};  ///< MB/s between machines; empty: not asked
  std::vector<std::string> what_if{};
  std::string market = "on-demand";  ///< of the money that is spoken of
};

/// Measures where the job's time goes; half of the flags' time.
Result<StallReport> measured_stalls(const MeasureFlags& flags, const StallFlags& stalls);
/// Measures the job on this machine, with a progress bar.
Result<JobMeasurement> measured(const MeasureFlags& flags);
/// Text that predict and plan can read; an error is a bug of the code that wrote it.
Result<void> save_profile(const std::string& path, const Json& profile);

/// The largest batch that fits a device, by what this machine held at each batch.
struct FittingBatch {
  double batch = 0;  ///< a power of two; 0: none fits
  double memory_mb = 0;
  std::string device{};  ///< "T4-16GB" or "this machine"
};
/// Without flags.memory_gb: the GPU's of the type, or this machine's. None: memory was not measured.
std::optional<FittingBatch> fitting_batch(const Json& profile, const MeasureFlags& flags);
/// A table for people.
std::string measurement_text(const JobMeasurement& found, const std::string& type);

/// Path of the fresh profile beside a job file, which is taken now where there is none and that is allowed; a note says
/// which. `time` as in MeasureFlags; empty: it must not be taken.
Result<std::string> profile_for(const std::string& job_file, const std::string& time, std::vector<std::string>& notes);

}  // namespace mayfly::cli
