#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "job/job_spec.h"
#include "predict/loss_fit.h"
#include "profile/spread.h"
#include "profile/workshop.h"

// A job's profile, measured on this machine: docs/profiling.md#measured.
namespace mayfly {

struct ProfileRequest {
  JobSpec spec{};
  std::string job_text{};
  std::filesystem::path job_file{};   ///< absolute
  std::filesystem::path program{};    ///< mayfly-train
  std::filesystem::path directory{};  ///< for logs; the owner removes it
  Seconds time{60};                   ///< of steps; starting and loading come on top
  std::string type = "local";         ///< what this machine counts as
  int workers = 2;                    ///< for what happens between them; each has an equal part of the cores
  std::string date{};                 ///< of today
  /// How much is done, 0 to 1, and what is looked at.
  std::function<void(double share, const std::string& what)> progress{};
};

/// Steps at one batch size, by one worker.
struct MeasuredBatch {
  int batch = 0;
  MeasuredMean step{};
  MeasuredMean compute{};  ///< all of it but the exchange, and waiting for a loader that works beside it
  double wait_s = 0;       ///< mean
  double exchange_s = 0;
  double peak_mb = 0;
};

struct JobMeasurement {
  std::vector<MeasuredBatch> batches{};     ///< the job's own first
  std::optional<MeasuredBatch> together{};  ///< one of `workers`, all at work
  int workers = 1;
  int cores = 1;  ///< of one worker
  Ready ready{};
  Measurement look{};  ///< into the network
  std::vector<std::int64_t> exchange_bytes{};
  LinkFit ring{};
  std::optional<double> request_mb_per_s{};  ///< what one worker draws from the servers
  std::optional<double> server_cpu_s{};      ///< per update
  std::optional<Measurement> stages{};       ///< of the data's way, each by itself
  std::optional<CheckpointWritten> checkpoint{};
  double start_s = 0;
  double form_s = 0;
  std::optional<LossFit> loss{};
  std::size_t losses = 0;
  double loss_steps = 0;  ///< how far the losses go
  std::vector<std::string> notes{};
  bool interrupted = false;
  Json profile{};  ///< docs/formats.md#profile
};

/// Starts real workers and has them work. After a signal it returns what there is, as long as a step was measured.
Result<JobMeasurement> measure_job(const ProfileRequest& request);

/// The profile of what was measured.
Json profile_of(const JobMeasurement& found, const ProfileRequest& request);

}  // namespace mayfly
