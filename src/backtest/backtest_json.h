#pragma once

#include <string>

#include "backtest/summary.h"
#include "base/json.h"

namespace mayfly {

/// What a backtest is told about; it outlives the answer.
struct BacktestContext {
  std::string job{};     ///< its profile's name
  std::string target{};  ///< "loss 0.8"
  const Backtest& test;
  const Summary& summary;
  const BacktestOptions& options;
  Seconds took{};
};

/// docs/formats.md#backtest
Json backtest_json(const BacktestContext& context);

/// "2 x p3.2xlarge spot + 1 x p3.2xlarge on-demand"
std::string machines_of(const PlanOption& option);
/// Its date, where the trace is dated, else the time since the trace's start.
std::string when(const Backtest& test, const Start& start);

}  // namespace mayfly
