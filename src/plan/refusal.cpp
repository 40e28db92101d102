#include "plan/refusal.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/how_many.h"
#include "base/text.h"
#include "plan/confidence.h"

namespace mayfly {

namespace {

/// The time it takes, against the time there is.
std::string against_deadline(const PlanOption& nearest, const PlanRequest& request) {
  if (remaining(request) > 0 || !request.progress)
    return fmt::format("the fastest plan takes {:.1f} s, the deadline leaves {:.1f} s", nearest.time,
                       remaining(request));
  return fmt::format("it has passed: {} are gone of {}", format_duration(request.progress->elapsed),
                     format_duration(*request.deadline));
}

/// The site with so many machines of each kind to be had.
Problem with_plenty(Problem site, int plenty) {
  for (Kind& kind : site.kinds) {
    if (kind.ladder.empty()) continue;
    Offer offer = kind.ladder.back();
    offer.limit = plenty;
    Kind more = make_kind(kind.worker, {offer}, {{offer.type, plenty, kind.existing}});
    more.lag = kind.lag;
    more.most_share = kind.most_share;
    more.least_share = kind.least_share;
    kind = std::move(more);
  }
  return site;
}

}  // namespace

double remaining(const PlanRequest& request) {
  const Seconds elapsed = request.progress ? request.progress->elapsed : Seconds{0};
  return request.deadline ? (*request.deadline - elapsed).count() : std::numeric_limits<double>::infinity();
}

Infeasible Refusal::over_budget(const PlanOption& cheapest) const {
  return {.binding = "budget",
          .reason = fmt::format("the cheapest plan{}{} costs {:.4f} USD, the budget is {:.4f} USD",
                                request_.deadline ? " that is in time" : "",
                                request_.confidence && request_.deadline
                                    ? fmt::format(" with {:.4g} % by its prediction", 100 * *request_.confidence)
                                    : "",
                                cheapest.cost, request_.budget->value),
          .nearest = cheapest};
}

Infeasible Refusal::no_cluster(const Infeasible& nothing, const std::optional<PlanOption>& fleet) const {
  const auto* loss = std::get_if<ToLoss>(&request_.target);
  if (loss != nullptr && profile_.loss && loss->loss <= profile_.loss->floor) return out_of_reach();
  return places_.sites().empty() && !fleet ? nothing : too_slow(fleet);
}

Infeasible Refusal::too_slow(const std::optional<PlanOption>& fleet) const {
  places_.set_deadline({});
  const auto quickest = request_.predictor == Predictor::lambda
                            ? std::vector<Placed>()
                            : places_.search(SearchMethod::exact, {.goal = Goal::fastest, .most_nodes = 0}).best;
  places_.reset_deadline();
  Infeasible answer{.binding = "deadline"};
  if (!quickest.empty()) answer.nearest = places_.option(quickest.front());
  if (fleet && (!answer.nearest || fleet->time < answer.nearest->time)) answer.nearest = fleet;
  answer.reason = answer.nearest && request_.deadline ? against_deadline(*answer.nearest, request_)
                                                      : "no cluster that may be rented reaches the target";
  if (answer.nearest && !answer.nearest->fleet && request_.risk && request_.confidence) {
    const Placed& placed = quickest.front();
    auto risk = whole_risk(request_, *answer.nearest, &places_.sites()[placed.site], &placed.candidate, Care::whole);
    if (risk) answer.nearest->risk = *std::move(risk);
    if (answer.nearest->risk) answer.reason += keepable(*answer.nearest->risk, request_);
  }
  if (const auto enough = quota_that_suffices()) {
    answer.binding = "quota";
    answer.reason += fmt::format("; without quotas {} could keep it", how_many(*enough, "machine"));
  }
  if (std::holds_alternative<ToLoss>(request_.target)) answer.nearest_loss = reachable_loss();
  return answer;
}

Infeasible Refusal::out_of_reach() const {
  const double floor = profile_.loss->floor;
  return {.binding = "loss",
          .reason = fmt::format("loss {} is not above the curve's floor of {}", std::get<ToLoss>(request_.target).loss,
                                floor),
          .nearest_loss = request_.deadline ? reachable_loss() : std::optional<double>(floor)};
}

bool Refusal::feasible_at(double loss) const {
  places_.set_target(ToLoss{loss});
  return !places_.search(SearchMethod::exact, {.goal = Goal::fastest, .most_nodes = 0}).best.empty();
}

/// The lowest loss some cluster reaches by the deadline, to three digits. Nothing where that is no lower than what it
/// begins with.
std::optional<double> Refusal::reachable_loss() const {
  double low = std::max(std::get<ToLoss>(request_.target).loss, profile_.loss->floor);
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
  places_.set_target(request_.target);
  const auto start = loss_at_start(profile_, profile_.sync);
  return reached && start && *reached >= *start ? std::nullopt : reached;
}

/// Machines of the cheapest plan if quotas were no matter; nothing if even that misses the deadline.
std::optional<int> Refusal::quota_that_suffices() const {
  if (request_.predictor == Predictor::lambda || !request_.deadline) return {};
  constexpr int kPlenty = 256;
  std::optional<int> machines;
  // Types that a quota left out are back in.
  PlanRequest free = request_;
  free.quota.clear();
  free.families.clear();
  free.default_quota = kPlenty;
  const auto made = make_problems(profile_, catalog_, free);
  if (!made) return {};
  for (const Problem& site : made->problems) {
    const auto result = exact_search(with_plenty(site, kPlenty), {.most_nodes = 0});
    if (!result.best.empty() && (!machines || result.best.front().machines < *machines))
      machines = result.best.front().machines;
  }
  return machines;
}

}  // namespace mayfly
