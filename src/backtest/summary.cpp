#include "backtest/summary.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/check.h"
#include "base/sample.h"

namespace mayfly {
namespace {

constexpr double kEdges[] = {0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 1.0000001};

/// Promises of one day.
struct Day {
  int promises = 0;
  int kept = 0;
};

/// As many promises as would scatter as much if each were drawn by itself; where none scatters, one a day.
double independent(const std::map<long, Day>& days, const Calibration& sum) {
  const double count = static_cast<double>(days.size());
  if (sum.kept <= 0 || sum.kept >= 1 || days.size() < 2) return count;
  double squares = 0;
  for (const auto& [number, day] : days) squares += std::pow(day.kept - sum.kept * day.promises, 2);
  const double variance = squares / std::pow(sum.promises, 2) * count / (count - 1);
  const double most = sum.promises;
  return variance > 0 ? std::clamp(sum.kept * (1 - sum.kept) / variance, 1.0, most) : most;
}

}  // namespace

Calibration calibration_of(const std::vector<Statement>& statements, double from, double to) {
  Calibration sum{.from = from, .to = std::min(to, 1.0)};
  std::map<long, Day> days;
  for (const Statement& one : statements) {
    if (one.chance < from || one.chance >= to) continue;
    ++sum.promises;
    sum.promised += one.chance;
    sum.kept_count += one.kept ? 1 : 0;
    Day& day = days[one.day];
    ++day.promises;
    day.kept += one.kept ? 1 : 0;
  }
  if (sum.promises == 0) return sum;
  sum.days = static_cast<int>(days.size());
  sum.promised /= sum.promises;
  sum.kept = sum.kept_count / static_cast<double>(sum.promises);
  constexpr double kNineteenOfTwenty = 1.96;
  const auto bounds = wilson_interval(sum.kept, independent(days, sum), kNineteenOfTwenty);
  sum.low = bounds.low;
  sum.high = bounds.high;
  return sum;
}

namespace {

std::vector<Calibration> by_chance(const std::vector<Statement>& statements) {
  std::vector<Calibration> bins;
  for (std::size_t i = 0; i + 1 < std::size(kEdges); ++i) {
    const Calibration bin = calibration_of(statements, kEdges[i], kEdges[i + 1]);
    if (bin.promises > 0) bins.push_back(bin);
  }
  return bins;
}

Spent spent_by(const Backtest& test, Rule rule) {
  const auto at = static_cast<std::size_t>(rule);
  Spent spent{.rule = rule};
  for (const Start& start : test.starts) {
    if (!start.runs[at]) continue;
    ++spent.starts;
    spent.kept += start.in_time[at] ? 1 : 0;
    spent.finished += start.runs[at]->finished ? 1 : 0;
    spent.restarts += start.runs[at]->restarts;
  }
  if (spent.starts == 0) return spent;
  spent.kept /= spent.starts;
  spent.restarts /= spent.starts;
  spent.compared = 2 * spent.finished > spent.starts;
  return spent;
}

void add_costs(Spent& spent, const std::vector<const Start*>& compared) {
  double sum = 0;
  for (const Start* start : compared) {
    spent.costs.push_back(start->runs[static_cast<std::size_t>(spent.rule)]->cost);
    sum += spent.costs.back();
  }
  if (spent.costs.empty()) return;
  std::sort(spent.costs.begin(), spent.costs.end());
  spent.mean = sum / static_cast<double>(spent.costs.size());
  spent.p10 = nearest_rank(spent.costs, 0.1);
  spent.p50 = nearest_rank(spent.costs, 0.5);
  spent.p90 = nearest_rank(spent.costs, 0.9);
}

}  // namespace

Summary summary_of(const Backtest& test) {
  Summary summary{.starts = static_cast<int>(test.starts.size())};
  for (const Rule rule : kRules) {
    if (Spent spent = spent_by(test, rule); spent.starts > 0) summary.spent.push_back(std::move(spent));
  }
  std::vector<Statement> chosen;
  std::vector<const Start*> compared;
  for (const Start& start : test.starts) {
    if (!start.entrant) continue;
    chosen.push_back({start.promised, day_of(test, start), start.kept});
    const bool all = std::all_of(summary.spent.begin(), summary.spent.end(), [&](const Spent& spent) {
      const auto& run = start.runs[static_cast<std::size_t>(spent.rule)];
      return !spent.compared || (run && run->finished);
    });
    if (all) compared.push_back(&start);
  }
  summary.planned = static_cast<int>(chosen.size());
  summary.compared = static_cast<int>(compared.size());
  if (!chosen.empty()) summary.promises = calibration_of(chosen);
  summary.by_chance = by_chance(chosen);
  summary.all_by_chance = by_chance(test.statements);
  for (Spent& spent : summary.spent) {
    if (spent.compared) add_costs(spent, compared);
  }
  return summary;
}

}  // namespace mayfly
