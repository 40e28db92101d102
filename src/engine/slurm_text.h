#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "engine/provider.h"

// What Slurm's programs print. Text, as it is the same from version 20 to this day; their JSON is not.
namespace mayfly {

/// The name of an array of machines, of which the first has this launch: RUN-LAUNCH in letters that any scheduler
/// takes.
std::string slurm_name(const std::string& run, int launch);

/// A machine in Slurm's queue: one element of an array.
struct SlurmElement {
  int launch = 0;
  std::string id{};  ///< ARRAY_INDEX, for scancel
  std::string state{};
  std::string node{};
  std::string partition{};
  std::string reason{};  ///< why it waits, in Slurm's word
  Seconds elapsed{};     ///< since it runs
  bool operator==(const SlurmElement&) const = default;
};
/// For squeue -o. Reasons are free text, so they come last.
inline constexpr std::string_view kSlurmFormat = "%F|%K|%T|%N|%P|%M|%j|%r";
/// Those of this run, among whatever else the user has in the queue.
Result<std::vector<SlurmElement>> slurm_elements(std::string_view squeue, const std::string& run);

/// What a state means for a machine. One that is not known counts as running: nothing follows from it.
Listed::Phase slurm_phase(std::string_view state);
/// Of one that is over and ran.
Ending slurm_ending(const SlurmElement& element);

/// The number of the array in the answer of sbatch --parsable: "17" or "17;cluster".
Result<int> submitted_array(std::string_view sbatch);

/// "1-02:03:04", "02:03:04", "03:04", "3": minutes where there is one number; UNLIMITED and what is no time is none.
std::optional<Seconds> slurm_time(std::string_view text);

struct SlurmPartition {
  std::string name{};
  std::string state{};
  bool standard = false;               ///< where jobs go that name none
  bool preempted = false;              ///< its jobs may have to make room
  Seconds grace{};                     ///< from the word to the end, then
  std::optional<Seconds> most_time{};  ///< of a job
  std::string nodes{};                 ///< as Slurm writes them: "n[1-3]"
  bool operator==(const SlurmPartition&) const = default;
};
/// Of `scontrol show partition -o`.
Result<std::vector<SlurmPartition>> slurm_partitions(std::string_view scontrol);

/// What holds for the whole cluster; Slurm's own defaults where nothing is said.
struct SlurmLimits {
  Seconds kill_wait{30};  ///< from SIGTERM to SIGKILL
  int array_size = 1001;  ///< indices of an array are below
  bool operator==(const SlurmLimits&) const = default;
};
/// Of `scontrol show config`.
SlurmLimits slurm_limits(std::string_view scontrol);

}  // namespace mayfly
