#pragma once

#include <string>

#include "backtest/backtest_json.h"
#include "backtest/run_backtest.h"

namespace mayfly::cli {

/// The tables for people.
std::string backtest_text(const BacktestContext& context);
std::string run_backtest_text(const RunBacktest& test);

}  // namespace mayfly::cli
