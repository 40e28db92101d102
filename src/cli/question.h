#pragma once

#include <string>
#include <vector>

#include "job/job_spec.h"
#include "plan/planner.h"

namespace mayfly::cli {

/// What a job file asks of the planner; the command line may override it.
struct Question {
  std::string profile{};
  std::string instance_type{};  ///< the only one the job would take; empty: any
  PlanRequest request{};
  std::vector<std::string> notes{};
};

/// `path` is the file the job was read from: its profile may stand beside it.
void apply_job(const JobSpec& job, const std::string& path, Question& question);

}  // namespace mayfly::cli
