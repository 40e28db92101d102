#include "plan/planner.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "plan/confidence.h"

namespace mayfly {

std::string_view name(SearchMethod method) {
  return method == SearchMethod::exact ? "exact" : method == SearchMethod::window ? "window" : "exhaustive";
}

Result<SearchMethod> parse_search(std::string_view text) {
  for (const auto method : {SearchMethod::exact, SearchMethod::window, SearchMethod::exhaustive}) {
    if (text == name(method)) return method;
  }
  return fail("search '{}': want exact, window or exhaustive", text);
}

namespace {

constexpr double kMostExhaustive = 2e9;
/// Points of the frontier are drawn to be looked at, not proven: a fraction of a second each.
constexpr long long kSketchNodes = 20'000;

class Planner {
 public:
  Planner(const Profile& profile, const Catalog& catalog, const PlanRequest& request, PlanProblems made)
      : profile_(profile),
        catalog_(catalog),
        request_(request),
        sites_(std::move(made.problems)),
        notes_(std::move(made.notes)) {}

  Result<std::variant<Plan, Infeasible>> plan() {
    const bool machines = request_.predictor != Predictor::lambda;
    const auto found = machines ? search(request_.search, {.keep = 1 + request_.runners_up}) : std::vector<Placed>();
    if (!machines) optimal_ = request_.search != SearchMethod::window;
    const FleetSearch fleets = search_fleets(profile_, catalog_, request_);
    evaluated_ += fleets.evaluated;
    std::vector<Finalist> finalists;
    for (const Placed& placed : found) finalists.push_back({option(placed), placed});
    const auto fleets_shown = std::min(fleets.best.size(), static_cast<std::size_t>(1 + request_.runners_up));
    for (std::size_t i = 0; i < fleets_shown; ++i) finalists.push_back({fleets.best[i], {}});
    std::stable_sort(finalists.begin(), finalists.end(),
                     [](const auto& a, const auto& b) { return a.option.added_cost < b.option.added_cost; });
    if (finalists.empty()) return infeasible(fleets);
    if (request_.budget && finalists.front().option.cost > request_.budget->value)
      return over_budget(finalists.front().option);
    if (request_.confidence) add_safer(finalists);
    if (request_.risk) {
      const auto assessed = assess(finalists, sites_, request_);
      if (!assessed) return unexpected(assessed.error());
      assessed_ = *assessed;
      if (const auto rest = finalists.size() - static_cast<std::size_t>(assessed_); rest > 0)
        notes_.push_back(fmt::format("{} plans could not be tried: they rent spot machines the trace lacks", rest));
    }
    if (request_.confidence) {
      optimal_ = false;
      if (auto no = keep_confident(finalists, *request_.confidence)) {
        no->notes = notes_;
        return *std::move(no);
      }
    }
    return finish(finalists, fleets);
  }

 private:
  PlanOption option(const Placed& placed) const { return plan_option(sites_[placed.site], placed.candidate); }

  SearchResult search_site(const Problem& problem, SearchMethod method, const SearchOptions& options) const {
    if (method == SearchMethod::exact) return exact_search(problem, options);
    if (method == SearchMethod::exhaustive) return exhaustive_search(problem, options);
    return problem.predictor == Predictor::cynthia ? cynthia_search(problem, options) : window_search(problem, options);
  }

  std::vector<Placed> search(SearchMethod method, const SearchOptions& options) {
    std::vector<Placed> found;
    bool optimal = true;
    double gap = 0;
    for (std::size_t site = 0; site < sites_.size(); ++site) {
      const auto result = search_site(sites_[site], method, options);
      for (const Candidate& candidate : result.best) found.push_back({site, candidate});
      evaluated_ += result.evaluated;
      optimal = optimal && (result.optimal || result.best.empty());
      gap = std::max(gap, result.gap);
    }
    optimal_ = optimal && method != SearchMethod::window;
    gap_ = gap;
    const auto before = options.goal == Goal::cheapest ? cheaper : faster;
    std::stable_sort(found.begin(), found.end(),
                     [&](const Placed& a, const Placed& b) { return before(a.candidate, b.candidate); });
    if (found.size() > static_cast<std::size_t>(options.keep)) found.resize(static_cast<std::size_t>(options.keep));
    return found;
  }

  Plan finish(const std::vector<Finalist>& finalists, const FleetSearch& fleets) {
    Plan plan{.chosen = finalists.front().option, .search = std::string(name(request_.search)), .notes = notes_};
    plan.optimal = optimal_;
    plan.gap = gap_;
    plan.assessed = assessed_;
    if (plan.chosen.fleet) {
      describe_fleet(plan);
    } else {
      describe_cluster(plan, *finalists.front().placed);
    }
    plan.time = with_band(plan.chosen.time, plan.relative_sd);
    plan.cost = with_band(plan.chosen.cost, plan.relative_sd);
    for (std::size_t i = 1; i < finalists.size() && i <= static_cast<std::size_t>(request_.runners_up); ++i) {
      const PlanOption& other = finalists[i].option;
      plan.runners_up.push_back(other);
      if (other.cost <= plan.chosen.cost * (1 + plan.relative_sd)) plan.ties.push_back(other);
    }
    if (request_.frontier) {
      add_frontier(plan, fleets);
      add_considered(plan, fleets);
    }
    plan.evaluated = evaluated_;
    return plan;
  }

  /// The cheapest plans for tighter deadlines, and all of them with some or all machines on demand. Where weather takes
  /// machines, margin is bought with more of them or with ones that stay; nothing proves that this is the cheapest way.
  void add_safer(std::vector<Finalist>& finalists) {
    if (request_.deadline && request_.predictor != Predictor::lambda) {
      const auto saved = save_deadlines();
      for (const double share : {0.95, 0.9, 0.85, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2}) {
        set_deadline(Seconds(share * remaining()));
        const SearchOptions tighter{.keep = 2, .most_nodes = kSketchNodes, .bound_the_rest = false};
        for (const Placed& placed : search(SearchMethod::exact, tighter)) {
          const auto known = std::any_of(finalists.begin(), finalists.end(), [&](const Finalist& other) {
            return other.placed && other.placed->site == placed.site &&
                   other.placed->candidate.counts == placed.candidate.counts &&
                   other.placed->candidate.server == placed.candidate.server;
          });
          if (!known) finalists.push_back({option(placed), placed});
        }
      }
      restore_deadlines(saved);
    }
    if (!request_.markets.contains(Market::on_demand)) return;
    const std::size_t bare = finalists.size();
    for (std::size_t i = 0; i < bare; ++i) {
      for (const double share : {0.25, 0.5, 0.75, 1.0}) {
        if (auto safer = partly_on_demand(finalists[i].option, catalog_, share))
          finalists.push_back({*std::move(safer), finalists[i].placed});
      }
    }
  }

  void describe_fleet(Plan& plan) const {
    const auto* platform = catalog_.find_function(plan.chosen.platform);
    double epochs = std::get<ForEpochs>(request_.target).epochs;
    if (request_.progress) epochs = std::max(0.0, epochs - std::get<ForEpochs>(request_.progress->reached).epochs);
    plan.functions =
        serverless_prediction(profile_, *platform, *plan.chosen.fleet, epochs, plan.chosen.servers[0].rate);
    plan.iterations = plan.functions->iterations;
    plan.relative_sd = model_sd(Predictor::lambda);
    plan.basis = profile_.origin.basis;
  }

  std::vector<Group> groups_of(const Placed& placed) const {
    std::vector<Group> groups;
    const Problem& problem = sites_[placed.site];
    for (std::size_t k = 0; k < problem.kinds.size(); ++k) {
      if (placed.candidate.counts[k] > 0) groups.push_back({&problem.kinds[k].worker, placed.candidate.counts[k]});
    }
    return groups;
  }

  void describe_cluster(Plan& plan, const Placed& placed) {
    const Problem& problem = sites_[placed.site];
    const auto groups = groups_of(placed);
    plan.speed = cluster_speed(problem.predictor, problem.job, groups, problem.servers[placed.candidate.server].pool);
    plan.iterations = Evaluator(problem).work(*plan.speed, placed.candidate.machines).value_or(0);
    plan.relative_sd = relative_sd(problem.predictor, problem.target, profile_, groups);
    plan.basis = weakest_basis(groups);
    if (!request_.existing.empty()) add_addition(plan);
    compare_markets(plan, problem, placed.candidate);
    compare_homogeneous(plan, problem, placed.candidate);
  }

  /// What the chosen cluster has beyond the running machines.
  void add_addition(Plan& plan) const {
    for (const PlanLine& line : plan.chosen.cluster) {
      const auto known =
          std::find_if(plan.addition.begin(), plan.addition.end(), [&](const auto& m) { return m.type == line.type; });
      if (known == plan.addition.end()) {
        plan.addition.push_back({line.type, line.count});
      } else {
        known->count += line.count;
      }
    }
    for (MachineCount& machine : plan.addition) {
      for (const auto& [type, count] : request_.existing) {
        if (type == machine.type) machine.count -= count;
      }
    }
    std::erase_if(plan.addition, [](const MachineCount& machine) { return machine.count <= 0; });
  }

  /// The same machines for the same time at on-demand prices.
  void compare_markets(Plan& plan, const Problem& problem, const Candidate& candidate) const {
    double hourly = problem.servers[candidate.server].hourly.value;
    for (const PlanLine& line : plan.chosen.cluster) {
      const InstanceType* type = catalog_.find(line.type);
      if (type == nullptr || !type->on_demand) return;
      hourly += line.count * type->on_demand->rate.value;
    }
    plan.on_demand_cost = hourly * candidate.time / 3600;
  }

  void compare_homogeneous(Plan& plan, const Problem& problem, const Candidate& candidate) const {
    std::optional<std::size_t> fastest;
    std::optional<std::size_t> slowest;
    const auto speed = [&](std::size_t k) { return problem.kinds[k].worker.batch / problem.kinds[k].worker.compute; };
    for (std::size_t k = 0; k < problem.kinds.size(); ++k) {
      if (candidate.counts[k] == 0) continue;
      if (!fastest || speed(k) > speed(*fastest)) fastest = k;
      if (!slowest || speed(k) < speed(*slowest)) slowest = k;
    }
    if (fastest == slowest) return;
    plan.all_fastest = all_of(problem, candidate, *fastest);
    plan.all_slowest = all_of(problem, candidate, *slowest);
  }

  /// As many machines, all of one kind, at that kind's first price, whatever its quota: a comparison, not a plan.
  static std::optional<PlanOption> all_of(const Problem& problem, const Candidate& candidate, std::size_t kind) {
    Problem relaxed = problem;
    Offer first = relaxed.kinds[kind].ladder.front();
    first.limit = candidate.machines;
    relaxed.kinds[kind] = make_kind(problem.kinds[kind].worker, {first}, {{first.type, candidate.machines, 0}});
    std::vector<int> counts(problem.kinds.size());
    counts[kind] = candidate.machines;
    Candidate made;
    if (!Evaluator(relaxed).evaluate(counts, candidate.server, made)) return {};
    return plan_option(relaxed, made);
  }

  /// Cheapest clusters for deadlines between the fastest possible and the chosen plan's time and beyond.
  void add_frontier(Plan& plan, const FleetSearch& fleets) {
    std::vector<PlanOption> points{plan.chosen};
    points.insert(points.end(), fleets.best.begin(), fleets.best.end());
    if (request_.predictor != Predictor::lambda) {
      const auto saved = save_deadlines();
      const auto kept = std::pair(optimal_, gap_);
      set_deadline({});
      const auto quickest = search(SearchMethod::exact, {.goal = Goal::fastest, .most_nodes = 0});
      const auto cheapest = search(SearchMethod::exact, {.most_nodes = kSketchNodes, .bound_the_rest = false});
      constexpr int kSteps = 8;
      if (!quickest.empty() && !cheapest.empty()) {
        points.push_back(option(cheapest.front()));
        constexpr double kQuicker = 8;  // beyond that the frontier is a curiosity
        const double from = std::max(quickest.front().candidate.time, plan.chosen.time / kQuicker);
        const double to = cheapest.front().candidate.time;
        for (int i = 0; i < kSteps; ++i) {
          set_deadline(Seconds(from * std::pow(to / from, static_cast<double>(i) / kSteps)));
          for (const Placed& placed :
               search(SearchMethod::exact, {.most_nodes = kSketchNodes, .bound_the_rest = false}))
            points.push_back(option(placed));
        }
      }
      restore_deadlines(saved);
      std::tie(optimal_, gap_) = kept;
    }
    std::stable_sort(points.begin(), points.end(),
                     [](const auto& a, const auto& b) { return a.time != b.time ? a.time < b.time : a.cost < b.cost; });
    double cheapest_so_far = std::numeric_limits<double>::infinity();
    for (PlanOption& point : points) {
      if (point.cost >= cheapest_so_far) continue;
      cheapest_so_far = point.cost;
      plan.frontier.push_back(std::move(point));
    }
  }

  /// The best cluster of each type alone, so that a person sees what the mix was chosen over.
  void add_considered(Plan& plan, const FleetSearch& fleets) {
    plan.considered.push_back(plan.chosen);
    if (!fleets.best.empty() && !plan.chosen.fleet) plan.considered.push_back(fleets.best.front());
    if (request_.predictor != Predictor::lambda && request_.existing.empty()) {
      for (const Problem& site : sites_) {
        for (const Kind& kind : site.kinds) {
          Problem alone = site;
          alone.kinds = {kind};
          const auto result = exact_search(alone, {});
          evaluated_ += result.evaluated;
          if (result.best.empty()) continue;
          auto best = plan_option(alone, result.best.front());
          if (best.cluster != plan.chosen.cluster) plan.considered.push_back(std::move(best));
        }
      }
    }
    std::stable_sort(plan.considered.begin(), plan.considered.end(),
                     [](const auto& a, const auto& b) { return a.cost < b.cost; });
  }

  std::vector<std::optional<Seconds>> save_deadlines() const {
    std::vector<std::optional<Seconds>> deadlines;
    for (const Problem& site : sites_) deadlines.push_back(site.deadline);
    return deadlines;
  }
  void set_deadline(std::optional<Seconds> deadline) {
    for (Problem& site : sites_) site.deadline = deadline;
  }
  void restore_deadlines(const std::vector<std::optional<Seconds>>& saved) {
    for (std::size_t i = 0; i < saved.size(); ++i) sites_[i].deadline = saved[i];
  }

  Infeasible over_budget(const PlanOption& cheapest) const {
    return {.binding = "budget",
            .reason = fmt::format("the cheapest plan costs {:.4f} USD, the budget is {:.4f} USD", cheapest.cost,
                                  request_.budget->value),
            .nearest = cheapest,
            .notes = notes_};
  }

  Infeasible infeasible(const FleetSearch& fleets) {
    const auto* loss = std::get_if<ToLoss>(&request_.target);
    if (loss != nullptr && profile_.loss && loss->loss <= profile_.loss->floor) return out_of_reach();
    if (sites_.empty() && !fleets.quickest) {
      return {.binding = "quota", .reason = "no machine can be rented under these quotas and markets", .notes = notes_};
    }
    const auto saved = save_deadlines();
    set_deadline({});
    const auto quickest = request_.predictor == Predictor::lambda
                              ? std::vector<Placed>()
                              : search(SearchMethod::exact, {.goal = Goal::fastest, .most_nodes = 0});
    restore_deadlines(saved);
    if (quickest.empty() && loss != nullptr) return out_of_reach();
    Infeasible answer{.binding = "deadline", .notes = notes_};
    if (!quickest.empty()) answer.nearest = option(quickest.front());
    if (fleets.quickest && (!answer.nearest || fleets.quickest->time < answer.nearest->time))
      answer.nearest = fleets.quickest;
    answer.reason = answer.nearest && request_.deadline
                        ? fmt::format("the fastest plan takes {:.1f} s, the deadline leaves {:.1f} s",
                                      answer.nearest->time, remaining())
                        : "no cluster reaches the target";
    if (const auto enough = quota_that_suffices()) {
      answer.binding = "quota";
      answer.reason += fmt::format("; without quotas {} machines could keep it", *enough);
    }
    if (loss != nullptr) answer.nearest_loss = reachable_loss();
    return answer;
  }

  double remaining() const {
    const Seconds elapsed = request_.progress ? request_.progress->elapsed : Seconds{0};
    return request_.deadline ? (*request_.deadline - elapsed).count() : std::numeric_limits<double>::infinity();
  }

  Infeasible out_of_reach() {
    const double floor = profile_.loss->floor;
    Infeasible answer{.binding = "loss", .notes = notes_};
    answer.reason =
        fmt::format("loss {} is not above the curve's floor of {}", std::get<ToLoss>(request_.target).loss, floor);
    answer.nearest_loss = request_.deadline ? reachable_loss() : std::optional<double>(floor);
    return answer;
  }

  bool feasible_at(double loss) {
    for (Problem& site : sites_) site.target = ToLoss{loss};
    return !search(SearchMethod::exact, {.goal = Goal::fastest, .most_nodes = 0}).empty();
  }

  /// The lowest loss some cluster reaches by the deadline, to three digits.
  std::optional<double> reachable_loss() {
    const Target asked = request_.target;
    double low = std::max(std::get<ToLoss>(asked).loss, profile_.loss->floor);
    double above = 1e-3 * std::max(1.0, std::fabs(low));
    constexpr int kDoublings = 30;
    int tries = 0;
    while (!feasible_at(low + above) && tries++ < kDoublings) above *= 2;
    double high = low + above;
    std::optional<double> reached;
    if (tries <= kDoublings) {
      while (high - low > 1e-4 * std::max(1e-3, std::fabs(high))) {
        const double middle = (low + high) / 2;
        (feasible_at(middle) ? high : low) = middle;
      }
      reached = high;
    }
    for (Problem& site : sites_) site.target = asked;
    return reached;
  }

  /// Machines of the cheapest plan if quotas were no matter; nothing if even that misses the deadline.
  std::optional<int> quota_that_suffices() const {
    if (request_.predictor == Predictor::lambda || !request_.deadline) return {};
    constexpr int kPlenty = 256;
    std::optional<int> machines;
    for (Problem site : sites_) {
      for (Kind& kind : site.kinds) {
        if (kind.ladder.empty()) continue;
        Offer offer = kind.ladder.back();
        offer.limit = kPlenty;
        kind = make_kind(kind.worker, {offer}, {{offer.type, kPlenty, kind.existing}});
      }
      const auto result = exact_search(site, {.most_nodes = 200'000});
      if (!result.best.empty() && (!machines || result.best.front().machines < *machines))
        machines = result.best.front().machines;
    }
    return machines;
  }

  const Profile& profile_;
  const Catalog& catalog_;
  const PlanRequest& request_;
  std::vector<Problem> sites_;
  std::vector<std::string> notes_;
  long long evaluated_ = 0;
  int assessed_ = 0;
  bool optimal_ = true;
  double gap_ = 0;
};

}  // namespace

Result<std::variant<Plan, Infeasible>> make_plan(const Profile& profile, const Catalog& catalog,
                                                 const PlanRequest& request) {
  if (const auto missing = missing_for(request.target, profile)) {
    return fail("profile '{}' needs {} for this target", profile.name, *missing);
  }
  if (request.progress && request.progress->reached.index() != request.target.index()) {
    return fail("progress and target must speak of the same thing: loss, epochs or steps");
  }
  auto made = make_problems(profile, catalog, request);
  if (!made) return unexpected(made.error());
  if (request.search == SearchMethod::exhaustive) {
    for (const Problem& problem : made->problems) {
      if (exhaustive_size(problem) > kMostExhaustive) {
        return fail(
            "exhaustive search would look at {:.3g} clusters, at most {:.0g} are allowed; use --quota or --search "
            "exact",
            exhaustive_size(problem), kMostExhaustive);
      }
    }
  }
  return Planner(profile, catalog, request, std::move(*made)).plan();
}

}  // namespace mayfly
