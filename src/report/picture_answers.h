#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/reading.h"
#include "report/svg.h"

// Pictures of what plan, replay and profile answer, as SVG; nothing where the document does not tell enough to draw.
namespace mayfly {

/// A bar for each view or policy that has shares of its machine time.
std::vector<BarChart::Row> machine_time_rows(const Json& views_or_policies);
std::optional<std::string> machine_time_picture(std::vector<BarChart::Row> rows, const std::string& title);

/// Time against cost: the frontier, the runners-up, and the chosen option with its bands; deadline and budget.
std::optional<std::string> frontier_picture(const Fields& plan);

/// A line for each policy.
std::optional<std::string> replay_progress_picture(const Fields& replay);
std::optional<std::string> replay_money_picture(const Fields& replay);

/// What a step waits for, with its 95 % interval; `compute` is what is left. The network is not part of the step: it is
/// what would come on top with each device on a machine of its own.
std::optional<std::string> stalls_picture(const Fields& stalls);

}  // namespace mayfly
