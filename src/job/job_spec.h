#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/document.h"
#include "base/units.h"
#include "job/train_spec.h"

namespace mayfly {

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

  // elastic
  std::optional<int> least_workers{};
  std::optional<int> most_workers{};

  // resources
  std::string cloud{};
  std::string region{};
  std::string instance_type{};
  std::string accelerator{};
  std::optional<int> accelerator_count{};
  std::optional<bool> use_spot{};

  std::optional<TrainSpec> train{};

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
