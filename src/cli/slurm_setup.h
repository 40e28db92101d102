#pragma once

#include <vector>

#include "cli/run_setup.h"
#include "engine/slurm_text.h"
#include "plan/planner.h"

namespace mayfly::cli {

/// What Slurm says of itself on this machine.
struct SlurmCluster {
  std::vector<SlurmPartition> partitions{};
  SlurmLimits limits{};
};
/// An error where Slurm's programs are not here, or their controller does not answer.
Result<SlurmCluster> slurm_cluster();

/// Flags of `run` that are for machines of this computer, and what a run on Slurm cannot do without.
Result<void> check_slurm_flags(const RunFlags& flags, const JobSpec& spec);

/// Before anything is planned: only what engine.slurm has can be had, at its prices. A profile that speaks of no such
/// type is left out, and that is said.
void limit_to_slurm(RunSetup& setup, PlanRequest& request);

/// What a worker is where nothing was planned: of the type that the job names or the only one, in a market that it
/// takes.
Result<MachineRole> slurm_role(const RunSetup& setup, const std::set<Market>& markets);

/// Prices of machines and servers, where engine.slurm knows all of them.
void set_slurm_prices(RunSetup& setup);

/// The engine, after Slurm was asked whether it would take each kind of machine. `notice`: the user's.
Result<EngineChoice> slurm_machines(const RunFlags& flags, RunSetup& setup, std::optional<Seconds> notice);

}  // namespace mayfly::cli
