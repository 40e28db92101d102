#include "backtest/field.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"
#include "plan/confidence.h"

namespace mayfly {

bool Entrant::needs_market() const {
  return std::any_of(option.cluster.begin(), option.cluster.end(),
                     [](const PlanLine& line) { return line.market == Market::spot; });
}

namespace {

/// The same machines on demand, with what is paid besides; nothing where one has no such price.
std::optional<UsdPerHour> on_demand_price(const PlanOption& option, const Catalog& catalog) {
  UsdPerHour sum{option.hourly};
  for (const PlanLine& line : option.cluster) {
    if (line.market != Market::spot) continue;
    const InstanceType* type = catalog.find(line.type);
    if (type == nullptr || !type->on_demand) return {};
    sum += static_cast<double>(line.count) * (type->on_demand->rate - line.rate);
  }
  return sum;
}

bool same(const PlanOption& a, const PlanOption& b) {
  return a.time == b.time && a.hourly == b.hourly && a.cluster == b.cluster && a.servers == b.servers &&
         a.fleet == b.fleet && a.platform == b.platform;
}

std::optional<std::size_t> entrant_of(const Field& field, const PlanOption& option) {
  const auto found = std::find_if(field.entrants.begin(), field.entrants.end(),
                                  [&](const Entrant& entrant) { return same(entrant.option, option); });
  if (found == field.entrants.end()) return {};
  return static_cast<std::size_t>(found - field.entrants.begin());
}

/// Takes part in the planner's contest as the one that looks at the risk of every finalist.
class Gathering {
 public:
  Gathering(const Profile& profile, const Catalog& catalog, const PlanRequest& request, const Trace& trace,
            const RiskOptions& options)
      : profile_(profile), catalog_(catalog), request_(request), trace_(trace), options_(options) {}

  /// At a glance each keeps the promise at a cost that nobody knows, so that no other is passed over as dearer; closely
  /// looked at none does, so that the planner goes on to safer ones.
  Result<Risk> operator()(const PlanOption& option, const Problem* problem, const Candidate* candidate, Care care) {
    searched_ = searched_ && care == Care::glance;
    if (care == Care::whole) return Risk{.in_time = Estimate{.middle = 0}};
    const Risk sure{.in_time = Estimate{.middle = 1}};
    if (entrant_of(field_, option)) return sure;
    auto made = planned_course(profile_, catalog_, request_, trace_, options_, option, problem, candidate);
    if (!made) return unexpected(made.error());
    if (made->question.deadline->count() <= 0) return fail("the deadline is before the machines train");
    std::optional<std::size_t> rental;
    if (problem != nullptr) rental = rental_for(option, *problem, *candidate);
    field_.entrants.push_back({.option = option,
                               .course = std::move(made->course),
                               .question = made->question,
                               .lead = made->lead,
                               .before = made->paid + Usd{option.beside},
                               .searched = searched_,
                               .rental = rental});
    return sure;
  }

  Field take() {
    field_.runners_up = request_.runners_up;
    for (const Entrant& entrant : field_.entrants) field_.pasts.emplace_back(entrant.course, entrant.question);
    return std::move(field_);
  }

 private:
  /// The finalist comes before the ones with some of its machines on demand.
  std::optional<std::size_t> rental_for(const PlanOption& option, const Problem& problem, const Candidate& candidate) {
    for (const auto& [site, counts, server, rental] : rented_) {
      if (site == &problem && counts == candidate.counts && server == candidate.server) return rental;
    }
    std::optional<std::size_t> rental;
    const auto price = on_demand_price(option, catalog_);
    const auto scene = scene_of(option, trace_, options_.prices);
    if (price && scene) {
      rental = field_.rentals.size();
      field_.rentals.push_back(rental_of(*scene, *price));
    }
    rented_.emplace_back(&problem, candidate.counts, candidate.server, rental);
    return rental;
  }

  const Profile& profile_;
  const Catalog& catalog_;
  const PlanRequest& request_;
  const Trace& trace_;
  const RiskOptions& options_;
  bool searched_ = true;
  Field field_{};
  std::vector<std::tuple<const Problem*, std::vector<int>, std::size_t, std::optional<std::size_t>>> rented_{};
};

}  // namespace

Result<Field> field_of(const Profile& profile, const Catalog& catalog, const PlanRequest& request, const Trace& trace,
                       const RiskOptions& options) {
  Gathering gathering(profile, catalog, request, trace, options);
  MAYFLY_CHECK(request.confidence && request.deadline, "a field is for a promise");
  PlanRequest asked = request;
  asked.budget.reset();
  asked.frontier = false;
  asked.risk = [&](const PlanOption& option, const Problem* problem, const Candidate* candidate, Care care) {
    return gathering(option, problem, candidate, care);
  };
  const auto answer = make_plan(profile, catalog, asked);
  if (!answer) return unexpected(answer.error());
  Field field = gathering.take();
  if (const auto* no = std::get_if<Infeasible>(&*answer); no != nullptr && field.entrants.empty())
    field.none = no->reason;
  return field;
}

std::vector<double> chances_at(const Field& field, Seconds now) {
  std::vector<double> chances;
  for (const Past& past : field.pasts) chances.push_back(past.in_time(now));
  return chances;
}

namespace {

/// Those found by the search, or all, as the planner orders them.
std::vector<Finalist> finalists_of(const Field& field, bool searched) {
  std::vector<Finalist> finalists;
  for (const Entrant& entrant : field.entrants) {
    if (entrant.searched || !searched) finalists.push_back({.option = entrant.option, .searched = entrant.searched});
  }
  std::stable_sort(finalists.begin(), finalists.end(),
                   [](const auto& a, const auto& b) { return a.option.added_cost < b.option.added_cost; });
  return finalists;
}

/// What the planner is told of an entrant; what it costs beside machines is put to it there.
Risk risk_at(const Field& field, std::size_t at, double chance, Seconds now) {
  const Entrant& entrant = field.entrants[at];
  Risk risk{.in_time = Estimate{.middle = chance}};
  if (const auto time = field.pasts[at].time_p50(now)) risk.time.p50 = *time + entrant.lead.count();
  if (const auto cost = field.pasts[at].cost_p50(now))
    risk.cost.p50 = *cost + entrant.before.value - entrant.option.beside;
  return risk;
}

}  // namespace

Choice choice_at(const Field& field, const std::vector<double>& chances, Seconds now, double confidence) {
  if (chances.empty()) return {};
  PlanRequest request{.runners_up = field.runners_up, .confidence = confidence};
  request.risk = [&](const PlanOption& option, const Problem*, const Candidate*, Care) -> Result<Risk> {
    const std::size_t at = *entrant_of(field, option);
    return risk_at(field, at, chances[at], now);
  };
  const std::vector<Problem> none;
  Weathering weathering(none, request);
  std::vector<Finalist> kept;
  for (const bool searched : {true, false}) {
    auto finalists = finalists_of(field, searched);
    const auto looked = weathering.glance(finalists, 1 + static_cast<std::size_t>(field.runners_up));
    MAYFLY_CHECK(looked, "every entrant has a risk");
    kept = weathering.kept(finalists);
    // What is safer than the cheapest costs more.
    if (!kept.empty() && (!searched || same(kept.front().option, finalists.front().option))) break;
  }
  if (kept.empty()) return {.chance = *std::max_element(chances.begin(), chances.end())};
  const std::size_t at = *entrant_of(field, kept.front().option);
  return {at, chances[at]};
}

}  // namespace mayfly
