#pragma once

#include <compare>
#include <string>

#include "cloud/instance_type.h"

namespace mayfly {

/// Machines that are rented alike: they come, go and cost the same.
struct MachineKind {
  std::string type{};
  std::string zone{};  ///< empty: any, or there is only one
  Market market = Market::spot;
  auto operator<=>(const MachineKind&) const = default;
};

}  // namespace mayfly
