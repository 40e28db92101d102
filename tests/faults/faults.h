#pragma once

#include <cstdint>
#include <string>

#include "faults/scenario.h"

namespace mayfly {

/// What a run under faults has seen.
struct FaultRun {
  std::string broken{};  ///< the promise that the controller broke; empty: none
  /// Everything the controller was told up to then: a scenario that does it again.
  Scenario scenario{};
  int commits = 0;    ///< steps accepted
  int rollbacks = 0;  ///< to a checkpoint
  int assigned = 0;
  bool finished = false;
  bool saved = false;  ///< finished with a checkpoint of the target
};

/// Drives a controller through weather drawn from `seed`: machines come, get notices true and false, die, also before
/// they have joined, and return under new names; orders are filled late or never; prices change; estimates and measured
/// speeds come in; a promise may run out. What is told arrives late, doubled, out of order, or, where nobody repeats
/// it, not at all. Two storms, each followed by a calm in which messages arrive and machines stay.
///
/// After every step: each sample is in exactly one accepted step, trained from the state that the earlier ones made;
/// commands speak only to machines that are there, and an assignment only to those without notice; generations rise;
/// the money spent stays within the budget as far as ticks come in time; a target that is to be saved is the end once a
/// checkpoint holds it, and until then whoever is assigned is told to save; after the end machines are released and
/// nothing else; and in a calm with machines enough steps are accepted. ARCHITECTURE.md#fault-test
FaultRun fault_run(std::uint64_t seed, PolicyName policy);

/// The broken promise as a comment, then the scenario and what the controller answered.
std::string fault_report(const FaultRun& run);

}  // namespace mayfly
