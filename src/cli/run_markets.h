#pragma once

#include <string>
#include <vector>

#include "cloud/catalog.h"
#include "engine/role.h"
#include "plan/planner.h"

namespace mayfly::cli {

/// `--market` of a run: of which markets its workers are, whatever the job file says. Empty: as it says.
Result<void> choose_markets(const std::string& flag, PlanRequest& request);

/// Whether workers may be rented on demand beside those planned, to keep a deadline: where the plan has some, or where
/// job and command line allow the market, and such a machine at its price.
bool may_rent(const PlanRequest& request, const std::vector<MachineRole>& planned, const Catalog& catalog);

}  // namespace mayfly::cli
