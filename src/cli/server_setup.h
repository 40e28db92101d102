#pragma once

#include "cli/run_setup.h"

// What a job's parameter servers mean for the set-up of its run.
namespace mayfly::cli {

/// A profile tells how fast machines are; the samples of a step, and whether servers are wanted, the job. Requires one
/// that says how it trains.
void fit_to_job(const JobSpec& spec, const Catalog& catalog, Profile& profile, PlanRequest& request);
/// Where a plan chose servers for a job that names none, they are part of it from here on.
void adopt_exchange(RunSetup& setup);

/// The machines of the servers, and what they cost where machines cost something. After planning and emulation, whose
/// slower world profile and catalogue are by then.
Result<void> set_servers(RunSetup& setup);

/// Where workers do not wait for each other, each takes the batch with which the profile knows its type.
void set_batch(const RunSetup& setup, MachineRole& role);

}  // namespace mayfly::cli
