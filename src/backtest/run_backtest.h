#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "backtest/rules.h"
#include "base/json.h"
#include "base/result.h"
#include "cloud/catalog.h"
#include "plan/planner.h"

namespace mayfly {

/// What another rule would have made of a run's weather.
struct RunRule {
  std::string rule{};
  RuleRun run{};
  std::optional<bool> in_time{};  ///< nothing without a deadline
  std::optional<Usd> cost{};      ///< nothing where its machines have no prices
};

/// A run that has ended, against what its plan promised and against other rules.
struct RunBacktest {
  std::string name{};
  std::vector<PlanLine> cluster{};  ///< of the plan
  std::vector<PlanLine> servers{};
  std::optional<Seconds> deadline{};
  Seconds promised_time{};
  Usd promised_cost{};
  std::optional<double> promised_chance{};  ///< where the plan was tried on a trace
  Seconds time{};
  std::optional<Usd> cost{};
  std::optional<bool> in_time{};
  int preemptions = 0;
  Seconds work{};  ///< of the plan's whole cluster, for what the run trained and kept, at the speed it had
  std::vector<RunRule> rules{};
};

/// From the folder of a run that was trained to its end by a plan of machines. Its weather is what its journal tells: a
/// machine of the market that joined is there until it is lost, given back or not; after the end everything stays as it
/// was. An error says what is missing.
Result<RunBacktest> load_run_backtest(const std::filesystem::path& folder, const Catalog& catalog,
                                      const RuleFigures& figures);

/// docs/formats.md#backtest
Json run_backtest_json(const RunBacktest& test);

}  // namespace mayfly
