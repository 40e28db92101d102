#pragma once

#include "cli/run_setup.h"
#include "plan/planner.h"

namespace mayfly::cli {

/// `--as`: what the machines of a run play, in place of what a plan says.
Result<void> read_as(const RunFlags& flags, RunSetup& setup);

/// Holds the machines back to what they play, and stretches promises and prices to the time that takes. Once their
/// number is known; before anything else looks at profile or catalogue.
Result<void> emulate(const RunFlags& flags, int cores, PlanRequest& request, RunSetup& setup);

}  // namespace mayfly::cli
