#include <cmath>

#include "fuzz/fuzz.h"
#include "job/job_spec.h"

namespace {

using mayfly::fuzz::require;

void check_train(const mayfly::TrainSpec& train) {
  require(!train.model.name.empty() && !train.data.name.empty(), "model and data have names");
  require((train.model.name == "count") == (train.data.name == "count"), "count counts");
  require((train.model.depth - 2) % 6 == 0 && train.model.embedding % train.model.heads == 0, "a network can be built");
  require(train.optimiser.rate > 0 && train.optimiser.momentum < 1, "the optimiser moves and slows down");
  for (const double step : {0., 1., 7., 1e9}) {
    require(std::isfinite(mayfly::rate_factor(train.schedule, step)), "rates are finite");
  }
}

void check_job(const mayfly::JobSpec& job) {
  require(!job.deadline || (std::isfinite(job.deadline->count()) && job.deadline->count() >= 0),
          "a deadline is finite and not negative");
  require(int(job.loss.has_value()) + int(job.epochs.has_value()) + int(job.steps.has_value()) <= 1,
          "a job has one target at most");
  require(!job.loss || std::isfinite(*job.loss), "a loss is finite");
  require(!job.epochs || *job.epochs > 0, "epochs are above 0");
  require(!job.steps || *job.steps > 0, "steps are above 0");
  require(!job.budget || job.budget->value > 0, "a budget is above 0");
  require(!job.least_workers || *job.least_workers > 0, "there is at least one worker");
  require(!job.least_workers || !job.most_workers || *job.least_workers <= *job.most_workers, "min is not above max");
  require(!job.nodes || *job.nodes > 0, "nodes are above 0");
  require(!job.resources.empty(), "a job takes some machines");
  for (const mayfly::Resources& one : job.resources) {
    for (const mayfly::Accelerator& accelerator : one.accelerators) {
      require(!accelerator.name.empty(), "an accelerator has a name");
      require(!accelerator.count || *accelerator.count > 0, "accelerators are above 0");
    }
    for (const auto& amount : {one.cpus, one.memory_gib}) require(!amount || amount->value > 0, "amounts are above 0");
    require(!one.most_hourly || one.most_hourly->value > 0, "a price an hour is above 0");
  }
  if (job.train) check_train(*job.train);
  for (const auto& key : job.unused) require(!key.empty(), "a key without effect has a name");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = mayfly::fuzz::text_of(data, size);
  const auto job = mayfly::parse_job(text, mayfly::fuzz::kFile);
  if (!job) {
    mayfly::fuzz::check_message(job.error());
    return 0;
  }
  check_job(*job);
  const auto again = mayfly::parse_job(text, mayfly::fuzz::kFile);
  require(again && *again == *job, "the same text reads the same");
  return 0;
}
