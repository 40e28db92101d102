#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "plan/bounds.h"
#include "plan/search.h"

namespace mayfly {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// Bounds are sums of many terms; this much may be rounding.
constexpr double kSlack = 1 - 1e-9;
/// Larger clusters are not searched; a problem that would need them is reported as not proven.
constexpr int kMostWorkers = 1024;
/// Multipliers of the price-against-rate bound.
constexpr std::size_t kMultipliers = 12;

// Terms. A *front* is one server choice with one number of workers n. Within a front the kinds stand in an order (best
// price per rate first) and a *node* has fixed the counts of the first i of them, leaving r machines to choose. For a
// multiplier m >= 0, every completion satisfies  price >= m * rate + g(m),  with g the fixed part's price - m * rate plus
// the r smallest (price - m * rate) among the rest. With  cost = work * price / rate  that bounds the cost from below.
class Front {
 public:
  Front(const Problem& problem, std::size_t server, int workers, const RateBounds& bounds, Evaluator& evaluator, Best& best,
        const SearchOptions& options)
      : problem_(problem), server_(server), workers_(workers), bounds_(bounds), evaluator_(evaluator), best_(best),
        options_(options), order_(problem.kinds.size()) {
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::stable_sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) { return ratio(a) < ratio(b); });
    counts_.resize(problem.kinds.size());
    for (std::size_t k = 0; k < counts_.size(); ++k) {
      counts_[k] = problem.kinds[k].existing;
      fixed_ += counts_[k];
    }
    for (const std::size_t k : order_) {
      free_.push_back(std::max(0, problem.kinds[k].limit() - problem.kinds[k].existing));
    }
    prepare_batches();
  }

  /// Lower bound on the objective (cost or time) of the whole front.
  double bound() {
    prepare_tables();
    return node_bound(root());
  }
  /// Looks at every cluster of the front that could be better than what is known. False when the node budget ran out.
  bool explore(long long& nodes) {
    prepare_tables();
    nodes_ = &nodes;
    visit(root());
    return nodes <= options_.most_nodes;
  }

 private:
  struct Node {
    std::size_t depth = 0;
    int left = 0;
    double rate = 0;
    double updates = 0;
    double samples = 0;  ///< updates weighted by batch
    double batch_sum = 0;
    double price = 0;
  };

  const Kind& kind(std::size_t depth) const { return problem_.kinds[order_[depth]]; }
  double ratio(std::size_t k) const {
    const Kind& one = problem_.kinds[k];
    return one.limit() == 0 ? kInfinity : one.hourly[1] / bounds_.rate[k];
  }
  double increment(std::size_t depth, int machine) const {
    const Kind& one = kind(depth);
    const auto at = static_cast<std::size_t>(one.existing + machine);
    return one.hourly[at + 1] - one.hourly[at];
  }

  Node root() const {
    Node node{.left = workers_ - fixed_, .price = problem_.servers[server_].hourly.value};
    for (std::size_t k = 0; k < problem_.kinds.size(); ++k) add(node, k, problem_.kinds[k].existing, 0);
    return node;
  }
  void add(Node& node, std::size_t k, int count, int from) const {
    const Kind& one = problem_.kinds[k];
    node.rate += count * bounds_.rate[k];
    node.updates += count * bounds_.updates[k];
    node.samples += count * bounds_.updates[k] * one.worker.batch;
    node.batch_sum += count * one.worker.batch;
    node.price += one.hourly[static_cast<std::size_t>(from + count)] - one.hourly[static_cast<std::size_t>(from)];
  }

  void prepare_batches() {
    const std::size_t m = order_.size();
    largest_.assign(m + 1, 0);
    smallest_.assign(m + 1, kInfinity);
    for (std::size_t i = m; i-- > 0;) {
      largest_[i] = largest_[i + 1];
      smallest_[i] = smallest_[i + 1];
      if (free_[i] == 0) continue;
      largest_[i] = std::max(largest_[i], kind(i).worker.batch);
      smallest_[i] = std::min(smallest_[i], kind(i).worker.batch);
    }
  }

  void prepare_tables() {
    if (!prices_.empty()) return;
    const int r = workers_ - fixed_;
    std::vector<double> ratios;
    for (std::size_t i = 0; i < order_.size(); ++i) {
      if (free_[i] > 0) ratios.push_back(ratio(order_[i]));
    }
    // Multipliers at the kinds' own prices per rate: there one kind after the other becomes worth its money.
    multipliers_.push_back(0);
    for (std::size_t j = 0; j < std::min(kMultipliers, ratios.size()); ++j) {
      const auto at = j * (ratios.size() - 1) / std::max<std::size_t>(1, std::min(kMultipliers, ratios.size()) - 1);
      if (std::isfinite(ratios[at]) && ratios[at] > multipliers_.back()) multipliers_.push_back(ratios[at]);
    }
    for (const double multiplier : multipliers_) {
      prices_.emplace_back(free_, r, [&](std::size_t i, int machine) {
        return increment(i, machine) - multiplier * bounds_.rate[order_[i]];
      });
    }
    rates_.emplace_back(free_, r, [&](std::size_t i, int) { return -bounds_.rate[order_[i]]; });
    rates_.emplace_back(free_, r, [&](std::size_t i, int) { return bounds_.rate[order_[i]]; });
    batches_.emplace_back(free_, r, [&](std::size_t i, int) { return -kind(i).worker.batch; });
  }

  /// The largest weighted batch a completion can have.
  double batch_bound(const Node& node) const {
    if (!bounds_.exact) {
      double batch = largest_[node.depth];
      for (std::size_t k = 0; k < counts_.size(); ++k) {
        if (counts_[k] > 0) batch = std::max(batch, problem_.kinds[k].worker.batch);
      }
      return batch;
    }
    if (node.updates <= 0) return largest_[node.depth];
    const double now = node.samples / node.updates;
    if (node.left == 0 || largest_[node.depth] <= now) return now;
    double gain = 0;
    double slowest = kInfinity;
    for (std::size_t i = node.depth; i < order_.size(); ++i) {
      if (free_[i] == 0) continue;
      const double updates = bounds_.updates[order_[i]];
      gain = std::max(gain, updates * (kind(i).worker.batch - now));
      slowest = std::min(slowest, updates);
    }
    return std::min(largest_[node.depth], now + node.left * gain / (node.updates + node.left * slowest));
  }

  double work_bound(const Node& node) const {
    if (problem_.job.exchange == Exchange::pipeline) {
      return least_work(problem_, workers_, problem_.job.global_batch, problem_.job.global_batch, 0);
    }
    const bool together = problem_.job.sync == Sync::bsp || problem_.servers[server_].pool.count == 0;
    if (together && !bounds_.exact) {
      const double most = node.batch_sum - batches_[0].sum(node.depth, node.left);
      return least_work(problem_, workers_, 0, most, 0);
    }
    double smallest = smallest_[node.depth];
    for (std::size_t k = 0; k < counts_.size(); ++k) {
      if (counts_[k] > 0) smallest = std::min(smallest, problem_.kinds[k].worker.batch);
    }
    return least_work(problem_, workers_, smallest, batch_bound(node), 0);
  }

  double node_bound(const Node& node) const {
    const double top = rates_[0].sum(node.depth, node.left);
    if (top == kInfinity) return kInfinity;
    const double highest = std::min(bounds_.cap, node.rate - top);
    const double work = work_bound(node) * kSlack;
    const double recovery = problem_.recovery.count();
    const double time = work / highest + recovery;
    if (problem_.deadline && time > problem_.deadline->count() + 1e-9) return kInfinity;
    if (options_.goal == Goal::fastest) return time;
    double lowest = bounds_.exact ? node.rate + rates_[1].sum(node.depth, node.left) : 0;
    if (problem_.deadline && problem_.deadline->count() > recovery) {
      lowest = std::max(lowest, work / (problem_.deadline->count() - recovery));
    }
    double price_per_rate = 0;
    for (std::size_t j = 0; j < multipliers_.size(); ++j) {
      const double rest = node.price - multipliers_[j] * node.rate + prices_[j].sum(node.depth, node.left);
      if (rest >= 0) {
        price_per_rate = std::max(price_per_rate, multipliers_[j] + rest / highest);
      } else if (lowest > 0) {
        price_per_rate = std::max(price_per_rate, multipliers_[j] + rest / std::min(lowest, highest));
      }
    }
    const double least_price = node.price + prices_[0].sum(node.depth, node.left);
    return (work * price_per_rate + recovery * least_price) / 3600 * kSlack;
  }

  bool hopeless(const Node& node) const {
    const double bound = node_bound(node);
    if (bound == kInfinity) return true;
    if (!best_.full()) return false;
    return bound > (options_.goal == Goal::cheapest ? best_.last().cost : best_.last().time);
  }

  void visit(const Node& node) {
    if (++*nodes_ > options_.most_nodes) return;
    if (node.left == 0) {
      if (workers_ > 0 && evaluator_.evaluate(counts_, server_, candidate_)) best_.offer(candidate_);
      return;
    }
    if (node.depth == order_.size() || hopeless(node)) return;
    const std::size_t k = order_[node.depth];
    for (int count = std::min(free_[node.depth], node.left); count >= 0; --count) {
      Node child = node;
      child.depth = node.depth + 1;
      child.left = node.left - count;
      add(child, k, count, problem_.kinds[k].existing);
      counts_[k] += count;
      visit(child);
      counts_[k] -= count;
    }
  }

  const Problem& problem_;
  std::size_t server_;
  int workers_;
  const RateBounds& bounds_;
  Evaluator& evaluator_;
  Best& best_;
  const SearchOptions& options_;
  std::vector<std::size_t> order_;
  std::vector<int> free_;
  std::vector<int> counts_;
  int fixed_ = 0;
  std::vector<double> largest_;
  std::vector<double> smallest_;
  std::vector<double> multipliers_;
  std::vector<SuffixSums> prices_;
  std::vector<SuffixSums> rates_;    // [0] largest (negated), [1] smallest
  std::vector<SuffixSums> batches_;  // largest, negated
  long long* nodes_ = nullptr;
  Candidate candidate_;
};

/// Lower bound on the objective of every cluster with this server choice and at least n workers; never falls with n.
double bound_beyond(const Problem& problem, const ServerChoice& server, const RateBounds& bounds, int workers, Goal goal) {
  const bool settled = problem.job.sync == Sync::asp && problem.job.exchange != Exchange::pipeline;
  double largest = 0;
  double smallest = kInfinity;
  double ratio = kInfinity;
  double cheapest = kInfinity;
  for (std::size_t k = 0; k < problem.kinds.size(); ++k) {
    const Kind& kind = problem.kinds[k];
    if (kind.limit() == 0) continue;
    largest = std::max(largest, kind.worker.batch);
    smallest = std::min(smallest, kind.worker.batch);
    ratio = std::min(ratio, kind.hourly[1] / bounds.rate[k]);
    cheapest = std::min(cheapest, kind.hourly[1]);
  }
  const bool loss = std::holds_alternative<ToLoss>(problem.target);
  // Synchronous batches grow with the cluster, and with them the work towards a loss may shrink without limit.
  if (loss && !settled) return 0;
  const double work = least_work(problem, workers, smallest, largest, 0) * kSlack;
  if (goal == Goal::fastest) return work / bounds.cap_beyond;
  const double price = server.hourly.value + workers * cheapest;
  return work * std::max(ratio, price / bounds.cap_beyond) / 3600 * kSlack;
}

}  // namespace

SearchResult exact_search(const Problem& problem, const SearchOptions& options) {
  Evaluator evaluator(problem);
  Best best(problem, options);
  int machines = 0;
  int existing = 0;
  for (const Kind& kind : problem.kinds) {
    machines += kind.limit();
    existing += kind.existing;
  }
  const auto objective = [&](const Candidate& c) { return options.goal == Goal::cheapest ? c.cost : c.time; };
  const auto beaten = [&](double bound) { return best.full() && bound > objective(best.last()); };
  long long nodes = 0;
  double unproven = kInfinity;  // least bound among what was not searched
  for (std::size_t server = 0; server < problem.servers.size(); ++server) {
    for (int workers = std::max(problem.fewest, existing); workers <= std::min(machines, problem.most); ++workers) {
      const RateBounds bounds = rate_bounds(problem, problem.servers[server], workers);
      const double beyond = bound_beyond(problem, problem.servers[server], bounds, workers, options.goal);
      if (beaten(beyond)) break;
      if (workers > kMostWorkers || nodes > options.most_nodes) {
        unproven = std::min(unproven, beyond);
        break;
      }
      Front front(problem, server, workers, bounds, evaluator, best, options);
      const double bound = front.bound();
      if (bound == kInfinity || beaten(bound)) continue;
      if (!front.explore(nodes)) unproven = std::min(unproven, bound);
    }
  }
  SearchResult result{.best = best.list(), .evaluated = evaluator.evaluated()};
  if (!result.best.empty()) {
    const double value = objective(result.best.front());
    result.optimal = unproven >= value;
    result.gap = result.optimal ? 0 : (value - std::max(0.0, unproven)) / value;
  } else {
    result.optimal = unproven == kInfinity;
  }
  return result;
}

}  // namespace mayfly
