#pragma once

#include <string>
#include <vector>

#include "job/job_spec.h"
#include "plan/planner.h"

namespace mayfly::cli {

/// What a job file asks of the planner; the command line may override it.
struct Question {
  std::string profile{};
  std::vector<Resources> resources{};  ///< that the job names
  std::optional<JobSpec> train{};      ///< of a job that says how it trains
  JobSpec job{};                       ///< without a job file: one that says nothing
  std::string quota{};                 ///< as --quota has it
  PlanRequest request{};
  std::vector<std::string> notes{};
};

/// Clouds, regions, types and GPUs that a job names are in the catalogue; the error names the first that is not.
Result<void> known_resources(const std::vector<Resources>& resources, const Catalog& catalog);

/// `path` is the file the job was read from: its profile may stand beside it.
void apply_job(const JobSpec& job, const std::string& path, Question& question);

}  // namespace mayfly::cli
