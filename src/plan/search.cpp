#include "plan/search.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "predict/cycles.h"

namespace mayfly {

void Best::offer(const Candidate& candidate) {
  // The deadline is a promise to the nanosecond; below that it is the rounding of the sums.
  if (problem_->deadline && candidate.latest > problem_->deadline->count() + 1e-9) return;
  const auto before = options_->goal == Goal::cheapest ? cheaper : faster;
  if (full() && !before(candidate, list_.back())) return;
  const auto at = std::lower_bound(list_.begin(), list_.end(), candidate, before);
  if (at != list_.end() && at->server == candidate.server && at->counts == candidate.counts) return;
  list_.insert(at, candidate);
  if (list_.size() > static_cast<std::size_t>(options_->keep)) list_.pop_back();
}

double Best::worst() const {
  if (!full()) return options_->cutoff;
  const Candidate& last = list_.back();
  return std::min(options_->cutoff, options_->goal == Goal::cheapest ? last.cost : last.time);
}

double exhaustive_size(const Problem& problem) {
  double size = static_cast<double>(problem.servers.size());
  for (const Kind& kind : problem.kinds) size *= kind.limit() - kind.existing + 1;
  return size;
}

SearchResult exhaustive_search(const Problem& problem, const SearchOptions& options) {
  Evaluator evaluator(problem);
  Best best(problem, options);
  std::vector<int> counts(problem.kinds.size());
  Candidate candidate;
  for (std::size_t server = 0; server < problem.servers.size(); ++server) {
    for (std::size_t k = 0; k < counts.size(); ++k) counts[k] = problem.kinds[k].existing;
    // An odometer over the count vectors.
    while (true) {
      const int workers = std::accumulate(counts.begin(), counts.end(), 0);
      const bool allowed = workers >= problem.fewest && workers <= problem.most;
      if (allowed && evaluator.evaluate(counts, server, candidate)) best.offer(candidate);
      std::size_t k = 0;
      while (k < counts.size() && counts[k] == problem.kinds[k].limit()) {
        counts[k] = problem.kinds[k].existing;
        ++k;
      }
      if (k == counts.size()) break;
      ++counts[k];
    }
  }
  return {.best = best.list(), .evaluated = evaluator.evaluated(), .optimal = !best.list().empty()};
}

namespace {

double alone(const Problem& problem, const Worker& worker) {
  return worker.compute + worker.pcie + worker.interconnect.at(worker.compute) +
         (worker.rate > 0 ? 2 * problem.job.parameters / worker.rate : 0);
}

}  // namespace

WorkerBounds window_bounds(const Problem& problem) {
  WorkerBounds bounds;
  double slowest_batch = INFINITY;
  double fastest = 0;
  int machines = 0;
  for (const Kind& kind : problem.kinds) {
    machines += kind.limit();
    if (kind.limit() == 0) continue;
    slowest_batch = std::min(slowest_batch, kind.worker.batch);
    fastest = std::max(fastest, kind.worker.batch / alone(problem, kind.worker));
  }
  bounds.lower = problem.fewest;
  bounds.upper = std::min(machines, problem.most);
  if (problem.predictor != Predictor::spotdnn) return bounds;
  const ContentionFit& fit = *problem.job.contention;
  const double unsaturated = (1 - fit.offset) / fit.slope;
  bounds.upper = std::min(bounds.upper, static_cast<int>(std::floor(unsaturated * unsaturated)));
  const auto* target = std::get_if<ToLoss>(&problem.target);
  const auto& loss = problem.profile->loss;
  if (target != nullptr && loss->form == LossCurve::Form::spotdnn && target->loss > loss->floor && problem.deadline) {
    const double convergence = std::sqrt(loss->cc_offset.value_or(1));
    const double steps =
        (loss->batch_slope * slowest_batch + loss->scale) * convergence / (target->loss - loss->floor) - loss->shift;
    const double lower = std::ceil(slowest_batch * steps / (fastest * problem.deadline->count()));
    bounds.lower = std::max(bounds.lower, static_cast<int>(std::clamp(lower, 1.0, 1e9)));
  }
  return bounds;
}

SearchResult window_search(const Problem& problem, const SearchOptions& options) {
  Evaluator evaluator(problem);
  Best best(problem, options);
  std::vector<std::size_t> order(problem.kinds.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return alone(problem, problem.kinds[a].worker) > alone(problem, problem.kinds[b].worker);
  });
  std::vector<std::size_t> machines;  // kind of each machine still to be had, slow first
  std::vector<int> existing(problem.kinds.size());
  for (const std::size_t k : order) {
    existing[k] = problem.kinds[k].existing;
    const int free = problem.kinds[k].limit() - existing[k];
    machines.insert(machines.end(), static_cast<std::size_t>(std::max(0, free)), k);
  }
  const WorkerBounds bounds = window_bounds(problem);
  const int already = std::accumulate(existing.begin(), existing.end(), 0);
  const int largest = std::min(bounds.upper - already, static_cast<int>(machines.size()));
  Candidate candidate;
  std::vector<int> counts;
  for (std::size_t server = 0; server < problem.servers.size(); ++server) {
    for (int n = std::max(bounds.lower - already, already > 0 ? 0 : 1); n <= largest; ++n) {
      for (std::size_t first = 0; first + static_cast<std::size_t>(n) <= machines.size(); ++first) {
        counts = existing;
        for (std::size_t i = first; i < first + static_cast<std::size_t>(n); ++i) ++counts[machines[i]];
        if (evaluator.evaluate(counts, server, candidate)) best.offer(candidate);
        if (n == 0) break;
      }
    }
  }
  return {.best = best.list(), .evaluated = evaluator.evaluated()};
}

std::optional<std::size_t> first_feasible_lane(const std::vector<Lane>& lanes, Candidate& out) {
  std::optional<std::size_t> winner;
  for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
    for (int size = lanes[lane].lower; size <= lanes[lane].upper; ++size) {
      const auto candidate = lanes[lane].at(size);
      if (!candidate) continue;
      if (!winner || cheaper(*candidate, out)) {
        out = *candidate;
        winner = lane;
      }
      break;
    }
  }
  return winner;
}

SearchResult cynthia_search(const Problem& problem, const SearchOptions& options) {
  Evaluator evaluator(problem);
  Best best(problem, options);
  const double link_share = 2 * problem.job.parameters;
  std::vector<Lane> lanes;
  for (std::size_t k = 0; k < problem.kinds.size(); ++k) {
    for (std::size_t server = 0; server < problem.servers.size(); ++server) {
      const ServerChoice& choice = problem.servers[server];
      if (choice.type != problem.kinds[k].name) continue;
      // Workers one server can feed without saturating: r = w b / (2 g c); asynchronous workers share it linearly,
      // synchronous ones send n gradients in a step that is itself n times shorter.
      const double r =
          problem.job.cynthia->work_gflop * choice.pool.nic / (link_share * problem.kinds[k].worker.gflops);
      const double feeds = problem.job.sync == Sync::asp ? std::ceil(r * choice.pool.count)
                                                         : std::floor(std::sqrt(r * choice.pool.count));
      const int most = std::min({problem.kinds[k].limit(), problem.most, static_cast<int>(std::min(feeds, 1e6))});
      Lane lane{.lower = problem.fewest, .upper = most};
      lane.at = [&, k, server](int size) -> std::optional<Candidate> {
        std::vector<int> counts(problem.kinds.size());
        counts[k] = size;
        Candidate candidate;
        if (!evaluator.evaluate(counts, server, candidate)) return {};
        if (problem.deadline && candidate.latest > problem.deadline->count() + 1e-9) return {};
        return candidate;
      };
      lanes.push_back(std::move(lane));
    }
  }
  Candidate winner;
  if (first_feasible_lane(lanes, winner)) best.offer(winner);
  return {.best = best.list(), .evaluated = evaluator.evaluated()};
}

}  // namespace mayfly
