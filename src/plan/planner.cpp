#include "plan/planner.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "plan/confidence.h"
#include "plan/refusal.h"
#include "plan/room.h"

namespace mayfly {

namespace {

constexpr double kMostExhaustive = 2e9;
/// Of the best of one type alone.
constexpr long long kNodesOfOne = 200'000;

class Planner {
 public:
  Planner(const Profile& profile, const Catalog& catalog, const PlanRequest& request, PlanProblems made)
      : profile_(profile),
        catalog_(catalog),
        request_(request),
        variants_(std::move(made.profiles)),
        places_(std::move(made.problems), request),
        sites_(places_.sites()),
        refusal_(profile, catalog, request, places_),
        notes_(std::move(made.notes)),
        nothing_{.binding = made.binding, .reason = made.reason} {}

  Result<std::variant<Plan, Infeasible>> plan() {
    const bool machines = request_.predictor != Predictor::lambda;
    const Found found = machines ? places_.best_few() : Found{.optimal = request_.search != SearchMethod::window};
    optimal_ = found.optimal;
    gap_ = found.gap;
    const FleetSearch fleets = search_fleets(profile_, catalog_, request_);
    evaluated_ += fleets.evaluated;
    std::vector<Finalist> finalists;
    for (const Placed& placed : found.best) finalists.push_back({.option = places_.option(placed), .placed = placed});
    const auto fleets_shown = std::min(fleets.best.size(), 1 + static_cast<std::size_t>(request_.runners_up));
    for (std::size_t i = 0; i < fleets_shown; ++i) finalists.push_back({.option = fleets.best[i]});
    sort_by_cost(finalists);
    if (!finalists.empty()) doubt_beside(finalists.front());
    if (finalists.empty()) finalists = hopefuls();
    if (finalists.empty()) return noted(refusal_.no_cluster(nothing_, fleets.quickest));
    if (request_.budget && finalists.front().option.cost > request_.budget->value)
      return noted(refusal_.over_budget(finalists.front().option));
    if (!request_.risk && !finalists.front().searched)
      return noted({.binding = "confidence",
                    .reason = "no prediction is sure enough of being in time",
                    .nearest = finalists.front().option});
    if (!request_.risk) return finish(finalists, fleets);
    Weathering weathering(sites_, request_);
    const auto enough = 1 + static_cast<std::size_t>(request_.runners_up);
    if (const auto looked = weathering.glance(finalists, enough); !looked) return unexpected(looked.error());
    auto kept = weathering.kept(finalists);
    // Margin costs more than none: where the cheapest plan keeps what is wanted, none with more of it is cheaper.
    const bool first = !kept.empty() && finalists.front().option.risk && same_machines(kept.front(), finalists.front());
    if (request_.confidence && !first) {
      add_safer(finalists);
      if (const auto looked = weathering.glance(finalists, enough); !looked) return unexpected(looked.error());
      kept = weathering.kept(finalists);
    }
    assessed_ = weathering.assessed();
    if (weathering.refused() > 0)
      notes_.push_back(
          fmt::format("{} plans could not be tried: they rent spot machines the trace lacks", weathering.refused()));
    if (kept.empty()) return noted(weathering.none_kept(finalists));
    // The first is the cheapest of all; another is if all that are cheaper were seen, and dropped.
    if (!same_machines(kept.front(), finalists.front()))
      optimal_ = optimal_ && kept.front().searched && found.unproven >= kept.front().option.added_cost;
    return finish(kept, fleets);
  }

 private:
  Infeasible noted(Infeasible no) const {
    no.notes = notes_;
    return no;
  }

  static void sort_by_cost(std::vector<Finalist>& finalists) {
    std::stable_sort(finalists.begin(), finalists.end(),
                     [](const auto& a, const auto& b) { return a.option.added_cost < b.option.added_cost; });
  }

  /// With the weather where it is known, else as far as the prediction's own error goes.
  static Estimate banded(double bare, const Spread* spread, double relative_sd) {
    if (spread == nullptr) return with_band(bare, relative_sd);
    return {spread->p50.value_or(std::numeric_limits<double>::infinity()), spread->p10, spread->p90};
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
    plan.time = banded(plan.chosen.time, plan.chosen.risk ? &plan.chosen.risk->time : nullptr, plan.relative_sd);
    plan.cost = banded(plan.chosen.cost, plan.chosen.risk ? &plan.chosen.risk->cost : nullptr, plan.relative_sd);
    for (std::size_t i = 1; i < finalists.size() && i <= static_cast<std::size_t>(request_.runners_up); ++i) {
      const PlanOption& other = finalists[i].option;
      plan.runners_up.push_back(other);
      if (expected_cost(other) <= expected_cost(plan.chosen) * (1 + plan.relative_sd)) plan.ties.push_back(other);
    }
    if (request_.frontier) {
      add_frontier(plan, fleets);
      add_considered(plan, fleets);
    }
    plan.evaluated = evaluated_ + places_.evaluated();
    return plan;
  }

  void doubt_beside(const Finalist& first) {
    constexpr double kNoMatter = 0.01;
    const double doubt = first.placed ? places_.doubt(*first.placed, first.option) : 0;
    if (doubt < kNoMatter) return;
    optimal_ = false;
    gap_ = std::max(gap_, doubt);
  }

  static bool same_machines(const Finalist& a, const Finalist& b) {
    return a.option.cluster == b.option.cluster && a.option.servers == b.option.servers &&
           a.option.fleet == b.option.fleet;
  }

  /// Where no prediction allows the confidence asked for: plans that are in time if the prediction is right.
  std::vector<Finalist> hopefuls() {
    std::vector<Finalist> found;
    if (!request_.confidence || !request_.deadline || request_.predictor == Predictor::lambda) return found;
    places_.set_caution(0);
    for (const Goal goal : {Goal::cheapest, Goal::fastest}) {
      for (const Placed& placed : places_.search(SearchMethod::exact, {.goal = goal, .keep = 3, .most_nodes = 0}).best)
        found.push_back({.option = places_.option(placed), .placed = placed, .searched = false});
    }
    return found;
  }

  /// Of every place, by the deadline that holds there; with running machines, beside them.
  std::vector<Placed> best_of_each_type(long long most_nodes) {
    std::vector<Placed> found;
    if (request_.predictor == Predictor::lambda) return found;
    for (std::size_t site = 0; site < sites_.size(); ++site) {
      const Problem& problem = sites_[site];
      std::vector<std::size_t> running;
      for (std::size_t k = 0; k < problem.kinds.size(); ++k) {
        if (problem.kinds[k].existing > 0) running.push_back(k);
      }
      for (std::size_t k = 0; k < problem.kinds.size(); ++k) {
        std::vector<std::size_t> kinds = running;
        const auto at = std::lower_bound(kinds.begin(), kinds.end(), k);
        if (at == kinds.end() || *at != k) kinds.insert(at, k);
        const SearchOptions some{.most_nodes = most_nodes, .bound_the_rest = false};
        const auto result = exact_search(only_kinds(problem, kinds), some);
        evaluated_ += result.evaluated;
        if (result.best.empty()) continue;
        Candidate best = result.best.front();
        std::vector<int> counts(problem.kinds.size());
        for (std::size_t i = 0; i < kinds.size(); ++i) counts[kinds[i]] = best.counts[i];
        best.counts = std::move(counts);
        if (best.counts[k] > 0) found.push_back({site, std::move(best)});
      }
    }
    return found;
  }

  static void add_unknown(std::vector<Finalist>& finalists, const Places& places, const std::vector<Placed>& more) {
    for (const Placed& placed : more) {
      const auto known = std::any_of(finalists.begin(), finalists.end(), [&](const Finalist& other) {
        return other.placed && same(*other.placed, placed);
      });
      if (!known) finalists.push_back({.option = places.option(placed), .placed = placed, .searched = false});
    }
  }

  /// The cheapest plans for tighter deadlines, the best of each type, and all of them with some or all machines on
  /// demand. Where weather takes machines, margin is bought with more of them or with ones that stay; nothing proves
  /// that this is the cheapest way.
  void add_safer(std::vector<Finalist>& finalists) {
    if (request_.deadline && request_.predictor != Predictor::lambda) {
      for (const double share : {0.95, 0.9, 0.85, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2}) {
        places_.set_deadline(Seconds(share * remaining(request_)));
        add_unknown(finalists, places_, places_.search(SearchMethod::exact, {.keep = 2, .most_nodes = 0}).best);
        add_unknown(finalists, places_, best_of_each_type(0));
      }
      places_.reset_deadline();
    }
    add_unknown(finalists, places_, best_of_each_type(kNodesOfOne));
    if (!request_.markets.contains(Market::on_demand)) return sort_by_cost(finalists);
    const std::size_t bare = finalists.size();
    for (std::size_t i = 0; i < bare; ++i) {
      for (const double share : {0.25, 0.5, 0.75, 1.0}) {
        auto safer = partly_on_demand(finalists[i].option, catalog_, request_, share);
        if (safer && within_families(*safer, catalog_, request_))
          finalists.push_back({.option = *std::move(safer), .placed = finalists[i].placed, .searched = false});
      }
    }
    sort_by_cost(finalists);
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
    const Strain strain = strain_of(plan.chosen, problem, placed.candidate, catalog_, *plan.speed);
    plan.memory = strain.memory;
    plan.peak_share = strain.peak_share;
    plan.relative_sd = relative_sd(problem.predictor, problem.target, profile_, groups, *plan.speed);
    plan.basis = weakest_basis(groups);
    if (!request_.existing.empty()) {
      plan.addition = beyond(plan.chosen.cluster, request_.existing);
      if (catalog_.server_charged) plan.added_servers = beyond(plan.chosen.servers, request_.existing);
    }
    compare_markets(plan, problem, placed.candidate);
    compare_homogeneous(plan, problem, placed.candidate);
  }

  /// The same machines for the same time at on-demand prices.
  void compare_markets(Plan& plan, const Problem& problem, const Candidate& candidate) const {
    const ServerChoice& servers = problem.servers[candidate.server];
    double hourly = (servers.rate * servers.pool.count).value;
    for (const PlanLine& line : plan.chosen.cluster) {
      const InstanceType* type = catalog_.find(line.type);
      if (type == nullptr || !type->on_demand) return;
      hourly += line.count * type->on_demand->rate.value;
    }
    plan.on_demand_cost = hourly * candidate.time / 3600 + plan.chosen.beside;
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
  std::optional<PlanOption> all_of(const Problem& problem, const Candidate& candidate, std::size_t kind) const {
    Problem relaxed = problem;
    relaxed.groups.clear();
    Offer first = relaxed.kinds[kind].ladder.front();
    first.limit = candidate.machines;
    Kind all = make_kind(problem.kinds[kind].worker, {first}, {{first.type, candidate.machines, 0}});
    all.most_share = problem.kinds[kind].most_share;
    all.least_share = problem.kinds[kind].least_share;
    relaxed.kinds[kind] = std::move(all);
    std::vector<int> counts(problem.kinds.size());
    counts[kind] = candidate.machines;
    Candidate made;
    if (!Evaluator(relaxed).evaluate(counts, candidate.server, made)) return {};
    return in_weather(places_.with_beside(plan_option(relaxed, made)), &relaxed, &made);
  }

  /// Cheapest clusters for deadlines between the fastest possible and the chosen plan's time and beyond: to be looked
  /// at, so climbed to, not proven.
  void add_frontier(Plan& plan, const FleetSearch& fleets) {
    std::vector<PlanOption> points{plan.chosen};
    for (const PlanOption& fleet : fleets.best) points.push_back(in_weather(fleet, nullptr, nullptr));
    const auto add = [&](const Placed& placed) {
      points.push_back(in_weather(places_.option(placed), &sites_[placed.site], &placed.candidate));
    };
    if (request_.predictor != Predictor::lambda) {
      places_.set_deadline({});
      const auto quickest = places_.search(SearchMethod::exact, {.goal = Goal::fastest, .most_nodes = 0}).best;
      const auto cheapest = places_.search(SearchMethod::exact, {.most_nodes = 0}).best;
      constexpr int kSteps = 8;
      if (!quickest.empty() && !cheapest.empty()) {
        add(cheapest.front());
        constexpr double kQuicker = 8;  // beyond that the frontier is a curiosity
        const double from = std::max(quickest.front().candidate.time, plan.chosen.time / kQuicker);
        const double to = cheapest.front().candidate.time;
        for (int i = 0; i < kSteps; ++i) {
          places_.set_deadline(Seconds(from * std::pow(to / from, static_cast<double>(i) / kSteps)));
          for (const Placed& placed : places_.search(SearchMethod::exact, {.most_nodes = 0}).best) add(placed);
        }
      }
      places_.reset_deadline();
    }
    std::stable_sort(points.begin(), points.end(), [](const auto& a, const auto& b) {
      return std::pair(expected_time(a), expected_cost(a)) < std::pair(expected_time(b), expected_cost(b));
    });
    constexpr double kDearest = 20;  // times the chosen plan's cost: likewise a curiosity
    double cheapest_so_far = kDearest * expected_cost(plan.chosen);
    for (PlanOption& point : points) {
      if (expected_cost(point) >= cheapest_so_far) continue;
      const bool chosen_again = !point.fleet && point.cluster == plan.chosen.cluster &&
                                point.servers == plan.chosen.servers &&
                                expected_cost(point) != expected_cost(plan.chosen);
      if (chosen_again) continue;
      cheapest_so_far = expected_cost(point);
      plan.frontier.push_back(std::move(point));
    }
  }

  /// The best cluster of each type alone, so that a person sees what the mix was chosen over.
  void add_considered(Plan& plan, const FleetSearch& fleets) {
    plan.considered.push_back(plan.chosen);
    if (!fleets.best.empty() && !plan.chosen.fleet)
      plan.considered.push_back(in_weather(fleets.best.front(), nullptr, nullptr));
    for (const Placed& placed : best_of_each_type(kNodesOfOne)) {
      auto best = in_weather(places_.option(placed), &sites_[placed.site], &placed.candidate);
      if (best.cluster != plan.chosen.cluster) plan.considered.push_back(std::move(best));
    }
    std::stable_sort(plan.considered.begin(), plan.considered.end(),
                     [](const auto& a, const auto& b) { return expected_cost(a) < expected_cost(b); });
  }

  /// For comparison, at a glance.
  PlanOption in_weather(PlanOption option, const Problem* problem, const Candidate* candidate) const {
    if (!request_.risk || option.risk) return option;
    if (auto risk = whole_risk(request_, option, problem, candidate, Care::glance)) option.risk = *std::move(risk);
    return option;
  }

  const Profile& profile_;
  const Catalog& catalog_;
  const PlanRequest& request_;
  std::vector<std::shared_ptr<const Profile>> variants_;  // that the sites point to
  Places places_;
  const std::vector<Problem>& sites_;  // its
  Refusal refusal_;
  std::vector<std::string> notes_;
  Infeasible nothing_;  ///< where there is no site
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
  if (request.progress && reached(request.target, request.progress->reached))
    return fail("the target is reached: by its progress the job has nothing left to train");
  if (const auto* loss = std::get_if<ToLoss>(&request.target)) {
    const auto start = loss_at_start(profile, profile.sync);
    if (start && loss->loss >= *start)
      return fail("loss {:g} needs no training: by the curve of profile '{}' it is {:.4g} before the first step",
                  loss->loss, profile.name, *start);
  }
  if (const auto* so_far = request.progress ? std::get_if<ToLoss>(&request.progress->reached) : nullptr) {
    const auto start = loss_at_start(profile, profile.sync);
    if (start && so_far->loss >= *start)
      return fail("a progress of loss {:g} is none: by the curve of profile '{}' it is {:.4g} before the first step",
                  so_far->loss, profile.name, *start);
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
