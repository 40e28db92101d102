#include "cli/question.h"

#include <fmt/core.h>

#include <filesystem>

#include "cli/command.h"

namespace mayfly::cli {

void apply_job(const JobSpec& job, const std::string& path, Question& question) {
  if (!job.profile.empty()) {
    const auto beside = std::filesystem::path(path).parent_path() / job.profile;
    std::error_code error;
    question.profile = std::filesystem::exists(beside, error) ? beside.string() : find_profile(job.profile).string();
  }
  question.instance_type = job.instance_type;
  PlanRequest& request = question.request;
  request.deadline = job.deadline;
  request.budget = job.budget;
  if (job.loss) request.target = ToLoss{*job.loss};
  if (job.epochs) request.target = ForEpochs{*job.epochs};
  if (job.steps) request.target = ForSteps{*job.steps};
  request.fewest_workers = job.least_workers.value_or(request.fewest_workers);
  request.most_workers = job.most_workers.value_or(request.most_workers);
  if (job.use_spot) request.markets = {*job.use_spot ? Market::spot : Market::on_demand};
  request.wanted = [spec = job](const InstanceType& type) {
    if (!spec.cloud.empty() && spec.cloud != type.cloud) return false;
    if (!spec.region.empty() && spec.region != type.region) return false;
    if (!spec.instance_type.empty() && spec.instance_type != type.name) return false;
    if (!spec.accelerator.empty() && (!type.gpu || !type.gpu->model.starts_with(spec.accelerator))) return false;
    return !spec.accelerator_count || *spec.accelerator_count == type.gpu_count;
  };
  if (!job.unused.empty())
    question.notes.push_back(fmt::format("understood but without effect on the plan: {}", fmt::join(job.unused, ", ")));
}

}  // namespace mayfly::cli
