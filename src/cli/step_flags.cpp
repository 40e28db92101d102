#include "cli/step_flags.h"

#include "cli/command.h"

namespace mayfly::cli {
namespace {

/// As many samples as a job file may say.
constexpr double kMostBatch = 1e9;

}  // namespace

void StepFlags::add_to(CLI::App& verb) {
  verb.add_option("--sync", sync, "asp or bsp (default: the profile's)")->check(CLI::IsMember({"asp", "bsp"}));
  verb.add_option("--batch", batch,
                  "samples of a step, dealt out to all workers; with asp those of one worker (default: the job's)")
      ->check(above_zero());
  auto* scale_flag =
      verb.add_flag("--scale-batch", scale, "let the step grow with the cluster: each machine adds its batch");
  verb.add_option("--max-batch", most, "up to so many samples")->check(above_zero())->needs(scale_flag);
}

Result<void> StepFlags::apply(Profile& profile) const {
  // What the parser calls positive is not all finite, and may be no number.
  for (const auto& [flag, value] : {std::pair("--batch", batch), std::pair("--max-batch", most)}) {
    if (value && !(*value > 0 && *value <= kMostBatch))
      return fail("{} {}: want a number above 0, at most 10^9", flag, *value);
  }
  if (batch && scale) return fail("--batch is of all machines and --scale-batch lets it grow with them: want one");
  if (!sync.empty()) profile.sync = sync == "asp" ? Sync::asp : Sync::bsp;
  if (scale && profile.sync == Sync::asp)
    return fail("--scale-batch: without a barrier (asp) every worker makes steps of its own, which do not grow");
  if (batch) {
    profile.batch = batch;
    profile.scale_batch = false;
  }
  if (scale) {
    profile.batch.reset();
    profile.scale_batch = true;
    if (most) profile.most_batch = *most;
  }
  return {};
}

}  // namespace mayfly::cli
