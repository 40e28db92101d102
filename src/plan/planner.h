#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "cloud/catalog.h"
#include "plan/search.h"
#include "predict/serverless.h"

namespace mayfly {

struct PlanOption;

/// How a plan would have fared in many windows of a trace: preemptions and the prediction's own error together.
struct Risk {
  std::optional<Estimate> in_time{};    ///< probability of meeting the deadline, where there is one
  std::optional<Estimate> in_budget{};  ///< likewise
  std::optional<double> time_p50{};     ///< s; nothing where fewer windows saw the end of the job
  std::optional<double> time_p95{};
  std::optional<double> cost_p50{};  ///< USD
  std::optional<double> cost_p95{};
  int windows = 0;
  int resamples = 0;  ///< of the windows, those put together from blocks
};
/// Given by a caller that knows the weather. Of functions there is no problem and no candidate. An error: the trace
/// does not cover this plan.
using RiskOfPlan = std::function<Result<Risk>(const PlanOption&, const Problem*, const Candidate*)>;

enum class SearchMethod { exact, window, exhaustive };
std::string_view name(SearchMethod method);
Result<SearchMethod> parse_search(std::string_view text);

/// What a person asks for.
struct PlanRequest {
  Target target{};
  std::optional<Seconds> deadline{};
  std::optional<Usd> budget{};
  Predictor predictor = Predictor::queue;
  SearchMethod search = SearchMethod::exact;
  std::set<Market> markets{Market::spot, Market::on_demand, Market::serverless};
  std::vector<MachineCount> quota{};  ///< overrides the catalogue's; type "*" stands for all not named
  int default_quota = 16;             ///< of a type without a quota of its own
  std::vector<MachineCount> existing{};
  std::optional<Progress> progress{};
  std::optional<Sync> sync{};
  std::vector<MachineCount> servers{};  ///< allowed server types and, if above 0, their number; empty: all
  int most_servers = 4;
  int fewest_workers = 1;
  int most_workers = 1'000'000;
  /// Types the user would take; empty: all.
  std::function<bool(const InstanceType&)> wanted{};
  int runners_up = 5;
  bool frontier = true;
  RiskOfPlan risk{};  ///< asked about the plan and its runners-up
  /// The only types to rent on the spot market; nothing: any.
  std::optional<std::set<std::string>> spot_types{};
  std::optional<double> confidence{};  ///< wanted probability of keeping deadline and budget; needs `risk`
};

/// Machines of one offer in a plan.
struct PlanLine {
  std::string type{};
  Market market = Market::on_demand;
  std::string zone{};
  int count = 0;
  UsdPerHour rate{};  ///< of one
  bool operator==(const PlanLine&) const = default;
};

/// One cluster (or fleet of functions) with what is predicted for it.
struct PlanOption {
  std::vector<PlanLine> cluster{};
  std::vector<PlanLine> servers{};
  std::optional<FunctionFleet> fleet{};
  std::string platform{};
  double time = 0;        ///< s
  double cost = 0;        ///< USD, running machines included
  double hourly = 0;      ///< USD/h, likewise
  double added_cost = 0;  ///< USD without the running machines: what plans are ordered by
  std::optional<Risk> risk{};
};

struct Plan {
  PlanOption chosen{};
  std::vector<MachineCount> addition{};  ///< when re-planning: what to add to the existing machines
  Estimate time{};
  Estimate cost{};
  double relative_sd = 0;
  Basis basis = Basis::given;
  std::optional<Speed> speed{};  ///< of machines
  std::optional<ServerlessPrediction> functions{};
  double iterations = 0;
  std::string search{};
  long long evaluated = 0;
  bool optimal = false;
  double gap = 0;    ///< means nothing where a confidence was asked for
  int assessed = 0;  ///< plans whose risk was looked at
  std::vector<PlanOption> ties{};
  std::vector<PlanOption> runners_up{};
  std::vector<PlanOption> frontier{};
  std::vector<PlanOption> considered{};  ///< best of each type, functions, and the chosen one; cheapest first
  std::optional<double> on_demand_cost{};
  std::optional<PlanOption> all_fastest{};  ///< as many machines, all of the plan's fastest type
  std::optional<PlanOption> all_slowest{};
  std::vector<std::string> notes{};
};

/// "No" as an answer: what stands in the way, and the nearest promise that can be kept.
struct Infeasible {
  std::string binding{};  ///< deadline, loss, budget or quota
  std::string reason{};
  std::optional<PlanOption> nearest{};
  std::optional<double> nearest_loss{};
  std::vector<std::string> notes{};
};

/// The cheapest way to keep the promise. An error means that the question cannot be answered with this profile.
Result<std::variant<Plan, Infeasible>> make_plan(const Profile& profile, const Catalog& catalog,
                                                 const PlanRequest& request);

/// One problem per place where machines can work together (cloud and region), and what had to be left out.
struct PlanProblems {
  std::vector<Problem> problems{};
  std::vector<std::string> notes{};
};
Result<PlanProblems> make_problems(const Profile& profile, const Catalog& catalog, const PlanRequest& request);

/// The lines a candidate stands for, cheapest offers first.
PlanOption plan_option(const Problem& problem, const Candidate& candidate);

/// Functions by the request's search: lambdaDNN's first feasible (`window`), or the cheapest of all, best first.
struct FleetSearch {
  std::vector<PlanOption> best{};
  long long evaluated = 0;
  std::optional<PlanOption> quickest{};  ///< whatever the deadline
};
FleetSearch search_fleets(const Profile& profile, const Catalog& catalog, const PlanRequest& request);

}  // namespace mayfly
