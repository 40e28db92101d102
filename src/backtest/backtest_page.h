#pragma once

#include <string>

#include "backtest/backtest_json.h"

namespace mayfly {

/// A page with everything in it, without scripts: promised against kept, money by rule, starts over time.
std::string backtest_html(const BacktestContext& context);

}  // namespace mayfly
