#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "engine/machine_script.h"
#include "job/engine_spec.h"

// How a run's machines are asked for in Slurm's own words.
namespace mayfly {

/// What all machines of a run have in common.
struct SlurmRun {
  MachineProgram machine{};
  SlurmSpec spec{};
  Seconds time{86400};    ///< of a machine; Slurm ends it then
  Seconds hand_over{60};  ///< before that, when it gets a notice
  int array_size = 1001;  ///< indices of an array are below
};

/// The queue of a market; none where the spec has none.
const SlurmQueue* queue_of(const SlurmSpec& spec, Market market);

/// The options by which such a machine is asked for: partition, type, time. An error where the spec has no such market
/// or type.
Result<std::vector<std::string>> slurm_options(const SlurmRun& run, const MachineRole& role);

/// Launches of one array, in order; their roles are alike.
struct SlurmArray {
  std::vector<int> launches{};  ///< at least one
  MachineRole role{};
};
/// sbatch and its arguments; the script is its standard input. An element's index is its launch without the first's.
Result<std::vector<std::string>> sbatch_words(const SlurmRun& run, const SlurmArray& array);
/// For a shell on each machine. The program runs under srun: what a batch script starts itself hears of its end when
/// the time to act on it is over.
std::string batch_script(const SlurmRun& run, const SlurmArray& array);

}  // namespace mayfly
