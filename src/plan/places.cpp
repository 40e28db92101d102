#include "plan/places.h"

#include <algorithm>
#include <cmath>

namespace mayfly {
namespace {

/// Of the proof, a few seconds; and of the search for runners-up.
constexpr long long kManyNodes = 5'000'000;
constexpr long long kFewNodes = 200'000;

}  // namespace

bool same(const Placed& a, const Placed& b) {
  return a.site == b.site && a.candidate.counts == b.candidate.counts && a.candidate.server == b.candidate.server;
}

std::vector<MachineCount> beyond(const std::vector<PlanLine>& cluster, const std::vector<MachineCount>& running) {
  std::vector<MachineCount> more;
  for (const PlanLine& line : cluster) {
    const auto known = std::find_if(more.begin(), more.end(), [&](const auto& m) { return m.type == line.type; });
    if (known == more.end()) {
      more.push_back({line.type, line.count});
    } else {
      known->count += line.count;
    }
  }
  for (MachineCount& machine : more) {
    for (const auto& [type, count] : running) {
      if (type == machine.type) machine.count -= count;
    }
  }
  std::erase_if(more, [](const MachineCount& machine) { return machine.count <= 0; });
  return more;
}

Places::Places(std::vector<Problem> sites, const PlanRequest& request) : request_(request), sites_(std::move(sites)) {
  for (const Problem& site : sites_) beside_.push_back(least_beside(site));
  if (!sites_.empty()) deadline_ = sites_.front().deadline;
}

PlanOption Places::with_beside(PlanOption option) const {
  if (!request_.beside) return option;
  option.beside = request_.beside(option).value;
  option.cost += option.beside;
  option.added_cost += option.beside;
  return option;
}

PlanOption Places::option(const Placed& placed) const {
  return with_beside(plan_option(sites_[placed.site], placed.candidate));
}

double Places::doubt(const Placed& placed, const PlanOption& option) const {
  return option.added_cost > 0 ? (option.beside - beside_[placed.site]) / option.added_cost : 0;
}

/// As much as one machine that is held no time and trains the fewest samples that one machine needs.
double Places::least_beside(const Problem& site) const {
  if (!request_.beside || site.kinds.empty()) return 0;
  PlanOption one;
  const Offer& offer = site.kinds.front().ladder.front();
  one.cluster.push_back({offer.type, offer.market, offer.zone, 1, offer.rate});
  Evaluator evaluator(site);
  Candidate alone;
  for (std::size_t k = 0; k < site.kinds.size(); ++k) {
    std::vector<int> counts(site.kinds.size());
    counts[k] = 1;
    if (!evaluator.evaluate(counts, 0, alone)) continue;
    one.samples = one.samples > 0 ? std::min(one.samples, alone.samples) : alone.samples;
  }
  return request_.beside(one).value;
}

void Places::set_target(const Target& target) {
  for (Problem& site : sites_) site.target = target;
}

void Places::set_caution(double caution) {
  for (Problem& site : sites_) site.caution = caution;
}

void Places::set_deadline(std::optional<Seconds> deadline) {
  for (Problem& site : sites_) site.deadline = deadline;
}

SearchResult Places::search_site(const Problem& problem, SearchMethod method, const SearchOptions& options) const {
  if (method == SearchMethod::exact) return exact_search(problem, options);
  if (method == SearchMethod::exhaustive) return exhaustive_search(problem, options);
  return problem.predictor == Predictor::cynthia ? cynthia_search(problem, options) : window_search(problem, options);
}

/// USD, at least, or s.
double Places::value(const Placed& placed, Goal goal) const {
  return goal == Goal::cheapest ? placed.candidate.cost + beside_[placed.site] : placed.candidate.time;
}

/// What so many clusters of all sites cost (or take) at most, by a climb: nothing dearer is looked for.
double Places::cutoff(SearchMethod method, SearchOptions options) {
  if (method != SearchMethod::exact || options.most_nodes == 0 || sites_.size() < 2) return kNoCutoff;
  options.most_nodes = 0;
  std::vector<double> found;
  for (std::size_t site = 0; site < sites_.size(); ++site) {
    const auto result = exact_search(sites_[site], options);
    evaluated_ += result.evaluated;
    for (const Candidate& one : result.best) found.push_back(value({site, one}, options.goal));
  }
  const auto keep = static_cast<std::size_t>(options.keep);
  if (found.size() < keep) return kNoCutoff;
  std::sort(found.begin(), found.end());
  return found[keep - 1];
}

Found Places::search(SearchMethod method, const SearchOptions& options) {
  Found found;
  const double limit = std::min(options.cutoff, cutoff(method, options));
  for (std::size_t site = 0; site < sites_.size(); ++site) {
    const double beside = options.goal == Goal::cheapest ? beside_[site] : 0;
    SearchOptions within = options;
    within.cutoff = limit - beside;
    if (within.cutoff < 0) continue;
    const auto result = search_site(sites_[site], method, within);
    for (const Candidate& candidate : result.best) found.best.push_back({site, candidate});
    evaluated_ += result.evaluated;
    found.unproven = std::min(found.unproven, result.unproven + beside);
  }
  if (method == SearchMethod::window) found.unproven = 0;
  const auto before = options.goal == Goal::cheapest ? cheaper : faster;
  const auto in_billionths = [&](const Placed& one) { return std::round(1e9 * value(one, options.goal)); };
  std::stable_sort(found.best.begin(), found.best.end(), [&](const Placed& a, const Placed& b) {
    const double left = in_billionths(a), right = in_billionths(b);
    return left != right ? left < right : before(a.candidate, b.candidate);
  });
  const double best = found.best.empty() ? kNoCutoff : value(found.best.front(), options.goal);
  found.optimal = found.unproven >= best;
  found.gap = found.optimal || method == SearchMethod::window ? 0 : found.best.empty() ? 1 : 1 - found.unproven / best;
  const auto keep = static_cast<std::size_t>(options.keep);
  if (found.best.size() > keep) found.best.resize(keep);
  return found;
}

Found Places::best_few() {
  const int keep = 1 + request_.runners_up;
  if (request_.search != SearchMethod::exact) return search(request_.search, {.keep = keep});
  Found first = search(SearchMethod::exact, {.most_nodes = kManyNodes});
  if (first.best.empty()) return first;
  constexpr double kDearest = 3;  // times the best one's cost: beyond that a runner-up is none
  Found others = search(SearchMethod::exact, {.keep = keep,
                                              .cutoff = kDearest * value(first.best.front(), Goal::cheapest),
                                              .most_nodes = kFewNodes,
                                              .bound_the_rest = false});
  first.unproven = others.unproven;
  for (Placed& other : others.best) {
    if (!same(other, first.best.front())) first.best.push_back(std::move(other));
  }
  return first;
}

}  // namespace mayfly
