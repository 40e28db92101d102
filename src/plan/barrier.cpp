// Branch and bound where all workers make one step together: docs/models.md#exact.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "plan/barrier_tier.h"
#include "plan/bounds.h"
#include "plan/climb.h"
#include "plan/search.h"

namespace mayfly {
namespace {

constexpr int kMostTiersBounded = 200;  ///< tiers whose bound is looked for after the nodes ran out
constexpr int kLargest = 1024;          ///< workers; a problem that would need more is reported as not proven

class BarrierSearch {
 public:
  BarrierSearch(const Problem& problem, const SearchOptions& options)
      : problem_(problem),
        options_(options),
        evaluator_(problem),
        best_(problem, options),
        job_(problem.job),
        most_time_(most_work_time(problem).value_or(kNever) + problem.recovery.count()) {}

  SearchResult run() {
    climb(problem_, evaluator_, best_);
    if (options_.most_nodes == 0)
      return {.best = best_.list(), .evaluated = evaluator_.evaluated(), .gap = 1, .unproven = 0};
    for (std::size_t server = 0; server < problem_.servers.size(); ++server) {
      for (const double batch : batches()) {
        job_.global_batch = batch;
        scan(server, batch);
      }
    }
    SearchResult result{
        .best = best_.list(), .evaluated = evaluator_.evaluated(), .unproven = std::max(0.0, unproven_)};
    if (result.best.empty()) {
      result.optimal = unproven_ == kNever;
    } else {
      const double value = objective(result.best.front());
      result.optimal = unproven_ >= value;
      result.gap = result.optimal ? 0 : (value - result.unproven) / value;
    }
    return result;
  }

 private:
  double objective(const Candidate& c) const { return options_.goal == Goal::cheapest ? c.cost : c.time; }

  /// Of the steps that clusters may have: the job's, or those of every size of machine.
  std::vector<double> batches() const {
    if (problem_.job.global_batch > 0) return {problem_.job.global_batch};
    std::vector<double> found;
    for (const Kind& kind : problem_.kinds) {
      if (kind.limit() > 0) found.push_back(kind.worker.batch);
    }
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
  }

  /// Kinds of no larger batch; nothing where a larger one runs already.
  std::optional<std::vector<std::size_t>> kinds_up_to(double batch) const {
    std::vector<std::size_t> kinds;
    for (std::size_t k = 0; k < problem_.kinds.size(); ++k) {
      const Kind& kind = problem_.kinds[k];
      if (kind.limit() == 0) continue;
      if (problem_.job.global_batch > 0 || kind.worker.batch <= batch) {
        kinds.push_back(k);
      } else if (kind.existing > 0) {
        return std::nullopt;
      }
    }
    return kinds;
  }

  /// What may still be better than the last of the best.
  Limits limits() const {
    Limits limits;
    limits.time = most_time_;
    if (best_.worst() == kNever) return limits;
    if (options_.goal == Goal::fastest) {
      limits.time = std::min(limits.time, best_.worst());
    } else {
      limits.cost = best_.worst() * 3600;
    }
    return limits;
  }

  /// At least so many are left for any cluster of n workers.
  double steps(int workers, double batch) const {
    const double work = least_work(problem_, workers, batch, batch, 0);
    return metric_of(problem_) == Metric::samples ? work / batch : work;
  }

  void scan(std::size_t server, double batch) {
    const auto kinds = kinds_up_to(batch);
    if (!kinds || kinds->empty()) return;
    int machines = 0;
    int existing = 0;
    for (const std::size_t k : *kinds) {
      machines += problem_.kinds[k].limit();
      existing += problem_.kinds[k].existing;
    }
    const int most = std::min(machines, problem_.most);
    const double at_last = steps(std::max(1, most), batch);
    for (int workers = std::max({problem_.fewest, existing, 1}); workers <= most; ++workers) {
      // The work of more workers is no less than of these, or of the last where it falls.
      const double work = steps(workers, batch);
      if (work == kNever) continue;
      if (!explore(*kinds, server, workers, work, std::min(work, at_last))) return;
    }
  }

  /// Clusters of so many workers; false where no larger one can be better either.
  bool explore(const std::vector<std::size_t>& kinds, std::size_t server, int workers, double work, double beyond) {
    BarrierTier tier(problem_, job_, server, workers, work);
    std::vector<std::pair<double, std::size_t>> slow;
    for (const std::size_t k : kinds) {
      const Worker& worker = problem_.kinds[k].worker;
      slow.emplace_back(tier.step(worker, 1e9 * pace_of(worker)), k);
    }
    std::sort(slow.begin(), slow.end());
    bool larger = false;
    std::size_t first = 0;  // kinds of which machines run are always there
    for (std::size_t i = 0; i < slow.size(); ++i) {
      if (problem_.kinds[slow[i].second].existing > 0) first = i;
    }
    for (std::size_t i = 0; i < slow.size(); ++i) {
      if (i < first) continue;
      larger = larger || may_be_larger(tier, problem_.kinds[slow[i].second].worker, server, workers, beyond, limits());
    }
    for (const auto& large : large_kinds(kinds)) {
      std::vector<std::size_t> allowed;
      for (std::size_t i = 0; i < slow.size(); ++i) {
        const std::size_t k = slow[i].second;
        // Of the kinds of the largest machine the first that is there counts as it.
        if (large && k < *large && problem_.kinds[k].worker.batch == job_.global_batch) continue;
        allowed.push_back(k);
        const bool there = !large || std::find(allowed.begin(), allowed.end(), *large) != allowed.end();
        if (i >= first && there && tier.set(allowed, k, large)) search(tier, limits());
      }
    }
    if (larger && workers >= kLargest) {
      unproven_ = 0;
      return false;
    }
    return larger;
  }

  /// Kinds that make the step as large as it is; nothing where it is so large anyway.
  std::vector<std::optional<std::size_t>> large_kinds(const std::vector<std::size_t>& kinds) const {
    std::vector<std::optional<std::size_t>> found;
    bool smaller = false;
    for (const std::size_t k : kinds) {
      const bool large = problem_.kinds[k].worker.batch == job_.global_batch;
      if (large && problem_.kinds[k].existing > 0) return {std::nullopt};
      if (large) found.emplace_back(k);
      smaller = smaller || !large;
    }
    if (problem_.job.global_batch > 0 || !smaller) return {std::nullopt};
    return found;
  }

  /// Whether clusters of so many workers or more, with the links of this one, may be within the limits. More of them
  /// are dearer, and no faster than at any pace: with P >= n p and P >= c R the least of P s(R) is where both are
  /// equal.
  bool may_be_larger(const BarrierTier& tier, const Worker& slow, std::size_t server, int workers, double work,
                     const Limits& limits) const {
    double price = kNever;
    double ratio = kNever;
    int existing = 0;
    for (const Kind& kind : problem_.kinds) {
      existing += kind.existing;
      if (kind.limit() == kind.existing) continue;
      price = std::min(price, kind.hourly[static_cast<std::size_t>(kind.existing) + 1]);
      ratio = std::min(ratio, kind.hourly[static_cast<std::size_t>(kind.existing) + 1] / pace_of(kind.worker));
    }
    if (price == kNever) return false;  // what runs is all there is
    const double least = problem_.servers[server].hourly.value + (workers - existing) * price;
    const double pace = existing > 0 || ratio <= 0 ? 1e9 * pace_of(slow) * workers : least / ratio;
    const double lead = problem_.recovery.count();
    if (work * tier.step(slow, 1e9 * pace_of(slow) * workers) + lead > limits.time * (1 + kRounding)) return false;
    return !(least * (work * tier.step(slow, pace) + lead) > limits.cost * (1 + kRounding));
  }

  void search(BarrierTier& tier, const Limits& limits) {
    const Limits least = tier.least();
    if (least.time > limits.time * (1 + kRounding) || least.cost > limits.cost * (1 + kRounding)) return;
    if (!tier.prepare(limits) || tier.plainly_hopeless()) return;
    if (nodes_ <= options_.most_nodes) {
      tier.make_tables();
      if (tier.visit(tier.root(), evaluator_, best_, nodes_, options_.most_nodes)) return;
    }
    if (options_.goal == Goal::fastest || !options_.bound_the_rest || ++bounded_ > kMostTiersBounded) {
      unproven_ = std::min(unproven_, options_.goal == Goal::fastest ? least.time : least.cost / 3600);
    } else {
      unproven_ = std::min(unproven_, tier.least_cost(limits) / 3600);
    }
  }

  const Problem& problem_;
  const SearchOptions& options_;
  Evaluator evaluator_;
  Best best_;
  Workload job_;
  double most_time_;  ///< s that the deadline leaves
  long long nodes_ = 0;
  double unproven_ = kNever;  // least bound among what was not searched
  int bounded_ = 0;
};

}  // namespace

bool has_barrier(const Problem& problem) {
  const Workload& job = problem.job;
  const bool alone = problem.servers.size() == 1 && problem.servers.front().pool.count == 0;
  return problem.predictor == Predictor::queue && job.exchange != Exchange::pipeline && !job.scale_batch &&
         (job.sync == Sync::bsp || alone);
}

SearchResult barrier_search(const Problem& problem, const SearchOptions& options) {
  return BarrierSearch(problem, options).run();
}

}  // namespace mayfly
