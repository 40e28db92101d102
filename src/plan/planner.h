#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "cloud/catalog.h"
#include "plan/quota.h"
#include "plan/search.h"
#include "predict/memory.h"
#include "predict/serverless.h"

namespace mayfly {

struct PlanOption;

/// Values that so many of 100 windows do not exceed; nothing where fewer windows saw the end of the job.
struct Spread {
  std::optional<double> p10{};
  std::optional<double> p50{};
  std::optional<double> p90{};
  std::optional<double> p95{};
};
/// How a plan would have fared in many windows of weather: preemptions and the prediction's own error together.
struct Risk {
  std::optional<Estimate> in_time{};    ///< probability of meeting the deadline, where there is one
  std::optional<Estimate> in_budget{};  ///< likewise
  std::optional<double> in_both{};      ///< where there are both
  Spread time{};                        ///< s
  Spread cost{};                        ///< USD
  int windows = 0;
  int resamples = 0;  ///< of the windows, those put together from blocks
};
/// How closely a plan is looked at: a glance tells hopeless plans and orders the others, and takes a tenth of the time.
enum class Care { glance, whole };
/// Given by a caller that knows the weather. Of functions there is no problem and no candidate. An error: the trace
/// does not cover this plan.
using RiskOfPlan = std::function<Result<Risk>(const PlanOption&, const Problem*, const Candidate*, Care)>;

enum class SearchMethod { exact, window, exhaustive };
std::string_view name(SearchMethod method);
Result<SearchMethod> parse_search(std::string_view text);

/// How a cluster's gradients meet. None: one worker keeps its own.
enum class Meeting { none, ring, servers, pipeline };
std::string_view name(Meeting meeting);
Result<Meeting> parse_meeting(std::string_view text);

/// What a person asks for.
struct PlanRequest {
  Target target{};
  std::optional<Seconds> deadline{};
  std::optional<Usd> budget{};
  Predictor predictor = Predictor::queue;
  SearchMethod search = SearchMethod::exact;
  std::set<Market> markets{Market::spot, Market::on_demand, Market::serverless};
  std::vector<MachineCount> quota{};    ///< overrides the catalogue's; type "*" stands for all not named
  int default_quota = 16;               ///< of a type without a quota of its own, where no family's quota limits it
  std::vector<FamilyQuota> families{};  ///< quotas on sums, of each site
  std::vector<MachineCount> existing{};
  std::optional<Progress> progress{};
  std::set<Meeting> exchanges{Meeting::none, Meeting::ring, Meeting::servers, Meeting::pipeline};
  std::vector<MachineCount> servers{};  ///< allowed server types and, if above 0, their number; empty: all
  int most_servers = 4;
  int fewest_workers = 1;
  int most_workers = 1'000'000;
  bool retired = false;           ///< types, too, that clouds offer no longer; else those that run, and those named:
  std::set<std::string> named{};  ///< types that the user asks for by name
  /// Types the user would take; empty: all.
  std::function<bool(const InstanceType&)> wanted{};
  /// Likewise their offers: market, zone, price. The zone of an offer may be empty.
  std::function<bool(const InstanceType&, const Offer&)> wanted_offer{};
  int runners_up = 5;
  bool frontier = true;
  /// From the order of such a machine until it trains, paid, where nothing runs yet; empty: at once.
  std::function<Seconds(const InstanceType&)> start{};
  /// What a plan costs beside its machines while they are held; empty: nothing.
  std::function<Usd(const PlanOption&)> beside{};
  RiskOfPlan risk{};  ///< asked about the plan and its runners-up
  /// The only types to rent on the spot market; nothing: any.
  std::optional<std::set<std::string>> spot_types{};
  std::optional<double> confidence{};  ///< wanted probability of keeping deadline and budget
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
  Meeting exchange = Meeting::none;
  double time = 0;        ///< s, with every machine there all the time
  double lead = 0;        ///< s of that before they train
  double cost = 0;        ///< USD of that, running machines included
  double beside = 0;      ///< USD of that which are not for machines while they are held
  double hourly = 0;      ///< USD/h, likewise
  double added_cost = 0;  ///< USD without the running machines: what searches order by
  double updates = 0;     ///< that are left; of machines
  double samples = 0;     ///< of those
  std::optional<Risk> risk{};
};
/// With the weather, where something is known of it; infinite where most windows see no end.
double expected_time(const PlanOption& option);
double expected_cost(const PlanOption& option);
/// Chance of keeping deadline and budget; nothing where it was not looked at.
std::optional<double> chance_kept(const PlanOption& option);

struct Plan {
  PlanOption chosen{};
  std::vector<MachineCount> addition{};       ///< when re-planning: workers to add to the existing machines,
  std::vector<MachineCount> added_servers{};  ///< and servers to rent with them
  Estimate time{};
  Estimate cost{};
  double relative_sd = 0;
  Basis basis = Basis::given;
  std::optional<Speed> speed{};        ///< of machines
  std::optional<MemoryFit> memory{};   ///< of the chosen machines, where it is tightest
  std::optional<double> peak_share{};  ///< of all GPUs together (MFU)
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
  std::string binding{};  ///< deadline, loss, budget, confidence, quota, memory, scale or gpu
  std::string reason{};
  std::optional<PlanOption> nearest{};
  std::optional<double> nearest_loss{};
  std::vector<std::string> notes{};
};

/// The cheapest way to keep the promise. An error means that the question cannot be answered with this profile.
Result<std::variant<Plan, Infeasible>> make_plan(const Profile& profile, const Catalog& catalog,
                                                 const PlanRequest& request);

/// One problem per place where machines can work together (cloud and region) and way to exchange, with or without
/// servers, and what had to be left out.
struct PlanProblems {
  std::vector<std::shared_ptr<const Profile>> profiles{};  ///< that the problems point to; the caller's is among them
  std::vector<Problem> problems{};
  std::vector<std::string> notes{};
  std::string binding{};  ///< why there is no problem at all: memory, scale, quota or gpu
  std::string reason{};
};
Result<PlanProblems> make_problems(const Profile& profile, const Catalog& catalog, const PlanRequest& request);

/// An option's lines keep the request's quotas on sums, for options that no search made.
bool within_families(const PlanOption& option, const Catalog& catalog, const PlanRequest& request);

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
