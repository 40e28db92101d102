#pragma once

#include <vector>

#include "cli/run_setup.h"
#include "engine/slurm_text.h"

namespace mayfly::cli {

/// What Slurm says of itself on this machine.
struct SlurmCluster {
  std::vector<SlurmPartition> partitions{};
  SlurmLimits limits{};
};
/// An error where Slurm's programs are not here, or their controller does not answer.
Result<SlurmCluster> slurm_cluster();

/// The engine, after Slurm was asked whether it would take each kind of machine. `notice`: the user's.
Result<EngineChoice> slurm_machines(const RunFlags& flags, RunSetup& setup, std::optional<Seconds> notice);

}  // namespace mayfly::cli
