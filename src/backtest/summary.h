#pragma once

#include <optional>
#include <vector>

#include "backtest/backtest.h"

namespace mayfly {

/// Promises that stated a chance within [from, to), and how many were kept.
struct Calibration {
  double from = 0;
  double to = 1;
  int promises = 0;
  int kept_count = 0;
  int days = 0;
  double promised = 0;  ///< mean of the chances stated
  double kept = 0;      ///< share
  double low = 0;       ///< of 95 %: days are drawn, not promises
  double high = 1;
};
/// Wilson's interval for as many promises as the scatter between days leaves. Requires at least one.
Calibration calibration_of(const std::vector<Statement>& statements, double from = 0, double to = 1.0000001);

/// Money of the starts at which the job of every rule that is compared was done before the trace ended.
struct Spent {
  Rule rule = Rule::mayfly;
  int starts = 0;                ///< with a plan, where the rule had something to rent
  double kept = 0;               ///< share of these in time
  int finished = 0;              ///< of these, before the trace ended
  bool compared = false;         ///< at most starts its job was done before the trace ended
  std::optional<double> mean{};  ///< USD; nothing where there is nothing to compare
  std::optional<double> p10{};
  std::optional<double> p50{};
  std::optional<double> p90{};
  double restarts = 0;          ///< mean of the starts
  std::vector<double> costs{};  ///< USD, ascending
};

struct Summary {
  int starts = 0;
  int planned = 0;                           ///< starts with a plan
  int compared = 0;                          ///< starts whose money is compared
  std::optional<Calibration> promises{};     ///< of the plans chosen
  std::vector<Calibration> by_chance{};      ///< likewise, by the chance stated
  std::vector<Calibration> all_by_chance{};  ///< of every plan that was looked at and needs the market
  std::vector<Spent> spent{};                ///< rules that have anything, mayfly first
};
Summary summary_of(const Backtest& test);

}  // namespace mayfly
