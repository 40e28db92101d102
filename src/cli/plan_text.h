#pragma once

#include <string>

#include "report/plan_json.h"

namespace mayfly::cli {

/// For people: the considered clusters with the chosen one marked, then why.
std::string plan_text(const PlanContext& context, const Plan& plan, bool colour);
std::string plan_text(const PlanContext& context, const Infeasible& answer, bool colour);
/// One line of a table: what the job takes of a GPU's memory, and whether it fits.
std::string memory_text(const MemoryFit& fit);

}  // namespace mayfly::cli
