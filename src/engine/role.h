#pragma once

#include <string>

#include "base/json.h"
#include "cloud/machine_kind.h"
#include "engine/limits.h"

namespace mayfly {

/// What a machine is for a run: of which type, from which zone and market, and what it does there.
struct MachineRole {
  std::string type = "local";
  std::string zone{};  ///< empty: where there is only one, or it does not matter
  Market market = Market::spot;
  UsdPerHour price{};
  bool server = false;  ///< holds parameters instead of training
  int batch = 0;        ///< samples of its updates where workers do not wait for each other; 0: the job's
  MachineLimits limits{};
  MachineKind kind() const { return {type, zone, market}; }
  bool operator==(const MachineRole&) const = default;
};

Json role_json(const MachineRole& role);
/// What is missing or unknown is as in a role that says nothing.
MachineRole role_from(const Json& json);

}  // namespace mayfly
