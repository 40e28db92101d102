#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/document.h"
#include "base/units.h"
#include "job/costs_spec.h"
#include "job/engine_spec.h"
#include "job/train_spec.h"

namespace mayfly {

/// A GPU model, or how its name begins, and how many a machine has to have.
struct Accelerator {
  std::string name{};
  std::optional<int> count{};
  bool operator==(const Accelerator&) const = default;
};

/// At least, or exactly, so much.
struct Amount {
  double value = 0;
  bool at_least = false;
  bool operator==(const Amount&) const = default;
};

/// Machines that a job would take. What is empty or absent is no limit.
struct Resources {
  std::string scheduler{};  ///< of a cluster of one's own: "slurm"
  std::string partition{};  ///< of the scheduler's
  std::string cloud{};
  std::string region{};
  std::string zone{};
  std::string instance_type{};
  std::vector<Accelerator> accelerators{};  ///< any of these
  std::optional<Amount> cpus{};
  std::optional<Amount> memory_gib{};
  std::optional<bool> use_spot{};
  std::optional<UsdPerHour> most_hourly{};  ///< of one machine
  bool operator==(const Resources&) const = default;
};

/// A job file: a SkyPilot task file with mayfly's own blocks. Format: docs/formats.md#job.
struct JobSpec {
  std::string name{};
  std::string profile{};  ///< path as written, relative to the job file; empty: none given

  // objective
  std::optional<Seconds> deadline{};
  std::optional<double> loss{};
  std::optional<double> epochs{};
  std::optional<double> steps{};
  std::optional<Usd> budget{};
  std::string quota{};  ///< as `plan --quota` has it

  // elastic
  std::optional<int> least_workers{};
  std::optional<int> most_workers{};

  std::optional<int> nodes{};  ///< workers, where elastic says nothing
  /// What `any_of` has, each with what stands beside it; one entry where there is no `any_of`.
  std::vector<Resources> resources{{}};

  std::optional<TrainSpec> train{};
  std::optional<CostsSpec> costs{};
  std::optional<EngineSpec> engine{};  ///< with what `resources.infra` says of it

  // What trains where the model is a script; elsewhere not read.
  std::string run{};      ///< for the shell
  std::string workdir{};  ///< as written, relative to the job file; empty: the job file's folder
  std::vector<std::pair<std::string, std::string>> envs{};

  std::vector<std::string> unused{};  ///< keys that were understood but have no effect yet
  bool operator==(const JobSpec&) const = default;
};

Result<JobSpec> parse_job(std::string_view text, const std::string& file);
/// Of a regular file that lies there itself, as in the folder of a run.
Result<JobSpec> load_job(const std::filesystem::path& path);

}  // namespace mayfly
