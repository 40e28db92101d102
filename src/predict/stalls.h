#pragma once

#include <optional>
#include <vector>

#include "base/result.h"
#include "base/signed_rank.h"

namespace mayfly {

/// Seconds that one step of the same size takes on each device, under conditions that differ in one thing each. The
/// conditions are measured in turns, round by round, so that whatever else the machine does disturbs all alike.
struct StallRuns {
  std::vector<double> one{};       ///< one device, data ready in memory, none to exchange with
  std::vector<double> all{};       ///< all devices of a machine, data ready in memory
  std::vector<double> cold{};      ///< all devices, real data that nothing has cached
  std::vector<double> warm{};      ///< all devices, real data that was read before
  std::vector<double> machines{};  ///< as many devices, spread over machines, data ready in memory; may be empty
};

/// Time lost in every step, and what part of the step it is.
struct Stall {
  Centre seconds{};
  double share = 0;  ///< of the condition in which it was seen; not below 0
  bool certain() const { return seconds.low > 0; }
};

/// docs/models.md#stalls. Interconnect is a share of `all`, prep of `warm`, fetch of `cold`; network is a slow-down
/// against `all`, which may exceed 1.
struct Stalls {
  Centre step{};  ///< with real, cold data
  Stall interconnect{};
  Stall prep{};
  Stall fetch{};
  std::optional<Stall> network{};
};

/// An error where conditions have different numbers of rounds, or none.
Result<Stalls> stalls(const StallRuns& runs);

}  // namespace mayfly
