#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cloud/tariffs.h"
#include "job/costs_spec.h"
#include "job/job_spec.h"
#include "job/profile.h"

// What is paid for beside training: docs/models.md#bill
namespace mayfly {

/// What a job moves and keeps. Absent: not known.
struct Freight {
  struct Stored {
    std::optional<Bytes> size{};
    Basis basis = Basis::given;
    std::string source{};  ///< of the size, in words
    Site at{};
  };
  Stored data{};
  Stored checkpoint{};  ///< one
  Loading load = Loading::copy;
  std::optional<Seconds> every{};  ///< from one checkpoint to the next
  int keep = CheckpointSpec{}.keep;
  std::optional<Bytes> image{};
  std::optional<Seconds> setup{};
  std::optional<Seconds> process{};  ///< from the start of a worker to its first step, without its data; measured
};
/// The job's word, then what was measured, then what follows from the parameters.
Freight freight_of(const Profile& profile, const JobSpec& job);

/// Weights and the optimiser's state, which go on where they were: by the recipe, for all workers together. Nothing
/// where the number of parameters is not known.
std::optional<Bytes> checkpoint_size(const Profile& profile);

/// What a machine is paid for before its first step, as far as it is known.
struct Prelude {
  Seconds start{};  ///< it boots, gets its image and starts the job
  Seconds load{};   ///< and gets its samples
  std::vector<std::string> unknown{};
  bool assumes_network = false;  ///< kLeastNetwork is in it
  Seconds time() const { return start + load; }
};
/// Taken where the network of a machine is not known and there is something to load: 2.5 Gbit/s is the least that any
/// machine with GPUs of the shipped catalogues may count on (g5.xlarge, g6.xlarge, p3.2xlarge), so time and cost err on
/// the long side, and no machine is chosen for what nobody says of it.
inline constexpr BytesPerSecond kLeastNetwork = gigabits_per_second(2.5);

/// Of a machine with this network, one of `machines`. `boot`: from the order until it is up.
Prelude prelude(const Freight& freight, std::optional<BytesPerSecond> network, int machines,
                std::optional<Seconds> boot);
/// As measured for the job, else what the type may count on.
std::optional<BytesPerSecond> network_of(const Profile& profile, const InstanceType& type);

/// The longest of several types: where workers wait for each other, all are paid for so long.
Seconds before_training(const Freight& freight, const Profile& profile, const std::vector<const InstanceType*>& types,
                        int machines, std::optional<Seconds> boot);

}  // namespace mayfly
