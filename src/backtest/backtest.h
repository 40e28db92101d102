#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "backtest/field.h"
#include "trace/trace.h"

namespace mayfly {

/// What a job's money is compared with.
enum class Rule { mayfly, on_demand, fixed, uniform_progress };
inline constexpr std::array kRules{Rule::mayfly, Rule::on_demand, Rule::fixed, Rule::uniform_progress};
std::string_view name(Rule rule);

struct BacktestOptions {
  double confidence = 0.9;
  int starts = 1000;                   ///< over all traces together
  std::optional<double> since_unix{};  ///< no start before
  std::uint64_t seed = 1;              ///< of the prediction's error at each start
  PolicyName policy = PolicyName::liveput;
  RuleFigures figures{};
};

/// A job begun at one moment of a trace.
struct Start {
  std::size_t history = 0;
  double time = 0;                                           ///< s of the trace
  std::optional<std::size_t> entrant{};                      ///< the plan; nothing: none has the wanted chance
  double promised = 0;                                       ///< chance of the plan, else of the surest there was
  bool kept = false;                                         ///< of the plan: in time
  double error = 1;                                          ///< the job's true work over the predicted
  std::array<std::optional<RuleRun>, kRules.size()> runs{};  ///< by rule; nothing where the rule has nothing to rent
  std::array<bool, kRules.size()> in_time{};

  bool operator==(const Start&) const = default;
};

/// A statement that some entrant's plan would keep the deadline, and whether it did.
struct Statement {
  double chance = 0;
  long day = 0;  ///< one for each day of each trace
  bool kept = false;
};

/// One trace and what there was to choose from.
struct History {
  std::string name{};
  std::optional<double> start_unix{};
  Seconds duration{};
  Field field{};
  std::optional<std::size_t> on_demand{};  ///< of `rented`
  Field rented{};                          ///< what there is on demand alone
};

struct Backtest {
  std::deque<History> histories{};
  std::vector<Start> starts{};          ///< by history, then time
  std::vector<Statement> statements{};  ///< of every entrant that needs the market, at every start
  Seconds deadline{};
};

/// At every start chooses a plan as `plan --trace --now --confidence` would with what the trace had told until then,
/// and looks up how it and the other rules went. Of a trace, starts lie evenly between the first with one deadline
/// before it and the last with one after it. Requires a deadline. An error where a trace has no room for a start, or
/// says nothing of the plan's machines.
Result<Backtest> backtest(const Profile& profile, const Catalog& catalog, const PlanRequest& request,
                          const std::vector<Trace>& traces, const BacktestOptions& options);

/// The day a start belongs to: its trace's, by the clock of that where it is dated.
long day_of(const Backtest& test, const Start& start);

}  // namespace mayfly
