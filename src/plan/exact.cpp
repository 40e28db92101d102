#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "plan/bounds.h"
#include "plan/climb.h"
#include "plan/search.h"

namespace mayfly {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// Bounds are sums of many terms; this much may be rounding.
constexpr double kSlack = 1 - 1e-9;
/// Larger clusters are not searched; a problem that would need them is reported as not proven.
constexpr int kMostWorkers = 1024;
/// Tiers whose bound is computed after the search was cut short.
constexpr int kMostBounded = 400;

// Terms. A *tier* is one server choice with one number of workers n. Within it P, U and Y are sums over the workers:
// of prices, of update rates (or samples per second) and of efforts. Two shapes of problem occur:
//
//   fixed work W    cost = W P / U,      in time when  U >= W / T
//   linear work     cost = P Y / U^2,    in time when  Y <= T U^2        (towards a loss; docs/models.md#exact)
//
// For the linear one Cauchy and Schwarz give  P Y >= S^2  with S the sum of sqrt(price * effort), and
// Y >= (sum of sqrt(effort / n))^2. So in both shapes a cluster that is in time and no dearer than C satisfies
//
//   A - m U <= 0   and   Q >= 0,        A = P, m = C / W, Q = U - W / T            (fixed)
//                                       A = S, m = sqrt(C - server price * time), Q = sum(r sqrt T - sqrt(effort / n))
//
// all linear in the counts. For any l >= 0 then A - m U - l Q <= 0, and a node (the counts of the first kinds fixed, r
// machines to choose) is hopeless as soon as the r smallest terms among the rest cannot bring that sum below zero.
constexpr std::array kMultipliers{0.0, 0.05, 0.15, 0.35, 0.7, 1.4, 3.0, 8.0};
/// The last sum stands for l = infinity: Q alone.
constexpr std::size_t kSums = kMultipliers.size() + 1;

class Tier {
 public:
  Tier(const Problem& problem, std::size_t server, int workers, const RateBounds& bounds, Evaluator& evaluator,
       Best& best, const SearchOptions& options)
      : problem_(problem),
        server_(server),
        workers_(workers),
        bounds_(bounds),
        evaluator_(evaluator),
        best_(best),
        options_(options),
        line_(linear_work(problem, workers)),
        counts_(problem.kinds.size()) {
    for (std::size_t k = 0; k < counts_.size(); ++k) {
      counts_[k] = problem.kinds[k].existing;
      existing_ += counts_[k];
      if (problem.kinds[k].limit() > problem.kinds[k].existing) order_.push_back(k);
    }
    // Cheapest progress first: the first clusters seen are good ones.
    std::stable_sort(order_.begin(), order_.end(),
                     [&](std::size_t a, std::size_t b) { return value_for_money(a) < value_for_money(b); });
    for (const std::size_t k : order_) free_.push_back(problem.kinds[k].limit() - problem.kinds[k].existing);
    work_ = line_ ? 0 : tier_work() * kSlack;
    time_limit_ = most_work_time(problem).value_or(kInfinity);
    set_discounts();
    set_lead();
    if (options.goal == Goal::fastest && best.worst() < kInfinity) {
      time_limit_ = std::min(time_limit_, best.worst() - problem.recovery.count());
    }
  }

  /// Looks at every cluster of the tier that could be better than what is known. False when the node budget ran out.
  bool explore(long long& nodes) {
    if (out_of_time()) return true;
    if (workers_ == existing_) {
      leaf();
      return true;
    }
    if (plainly_hopeless()) return true;
    // Made once: when the front itself finds something better the bounds are looser than they could be, but hold.
    prepare(best_.worst());
    nodes_ = &nodes;
    visit(root());
    return nodes <= options_.most_nodes;
  }

  /// The largest cost (to a thousandth) that the bounds rule out for the whole tier; for the gap of a search cut
  /// short.
  double least_cost() {
    if (out_of_time()) return kInfinity;
    if (workers_ == existing_ || options_.goal == Goal::fastest || best_.worst() == kInfinity) return 0;
    double low = 0;
    double high = best_.worst();
    prepare(high);
    if (hopeless(root())) return high;
    while (high - low > 1e-3 * high) {
      const double middle = (low + high) / 2;
      prepare(middle);
      (hopeless(root()) ? low : high) = middle;
    }
    return low;
  }

 private:
  struct Node {
    std::size_t depth = 0;
    int left = 0;
    std::array<double, kSums> sums{};
  };

  /// With caution a cluster must be faster than the deadline asks for by exp(z hypot(a, m)), m the mean of its workers'
  /// errors by their rates, a what all have in common. For any angle that is at least exp(z (a cos + m sin)), whose
  /// inverse is convex in m: so U / exp(z hypot(a, m)) is at most the sum of rate / exp(z (a cos + sd sin)).
  void set_discounts() {
    discounts_.assign(problem_.kinds.size(), 1);
    largest_discount_ = 1;
    const bool together = problem_.job.sync == Sync::bsp || problem_.servers[server_].pool.count == 0 ||
                          problem_.job.exchange == Exchange::pipeline || problem_.predictor == Predictor::cynthia;
    if (problem_.caution <= 0 || !problem_.deadline || options_.goal == Goal::fastest || together) return;
    const double common = common_sd(problem_.predictor, problem_.target, *problem_.profile);
    double usual = 0;
    int kinds = 0;
    for (const Kind& kind : problem_.kinds) {
      if (kind.limit() == 0) continue;
      usual += kind.worker.relative_sd;
      ++kinds;
    }
    usual /= std::max(1, kinds);
    const double length = std::hypot(common, usual);
    if (length <= 0) return;
    largest_discount_ = 0;
    for (std::size_t k = 0; k < discounts_.size(); ++k) {
      const double sd = (common * common + usual * problem_.kinds[k].worker.relative_sd) / length;
      discounts_[k] = std::exp(-problem_.caution * sd);
      largest_discount_ = std::max(largest_discount_, discounts_[k]);
    }
    time_limit_ = problem_.deadline->count() + 1e-9 - problem_.recovery.count();
  }

  void set_lead() {
    double cheapest = kInfinity;
    for (const std::size_t k : order_) {
      const Kind& kind = problem_.kinds[k];
      const auto at = static_cast<std::size_t>(kind.existing);
      cheapest = std::min(cheapest, kind.hourly[at + 1] - kind.hourly[at]);
    }
    const double machines = order_.empty() ? 0 : (workers_ - existing_) * cheapest;
    lead_ = problem_.recovery.count() * (problem_.servers[server_].hourly.value + machines) * kSlack;
  }

  bool out_of_time() const {
    return time_limit_ <= 0 || (!line_ && !(work_ / (bounds_.cap * largest_discount_) <= time_limit_));
  }

  /// What the best kinds alone, without quotas, could do at this size is already too slow or too dear: saves the
  /// tables.
  bool plainly_hopeless() const {
    double rate = 0;
    double price_per_rate = kInfinity;
    double alone = kInfinity;
    double time = kInfinity;
    for (std::size_t k = 0; k < counts_.size(); ++k) {
      if (problem_.kinds[k].limit() == 0) continue;
      if (problem_.kinds[k].existing > 0) return false;
      const double price = problem_.kinds[k].hourly[1];
      rate = std::max(rate, bounds_.rate[k]);
      price_per_rate = std::min(price_per_rate, price / bounds_.rate[k]);
      if (!line_) continue;
      alone = std::min(alone, price * effort(k, 1) / bounds_.updates[k]);
      time = std::min(time, effort(k, 1) / (bounds_.updates[k] * workers_));
    }
    if (!line_) {
      time = work_ / std::min(bounds_.cap, workers_ * rate);
      alone = work_ * price_per_rate;
    }
    if (time * kSlack > time_limit_ * largest_discount_) return true;
    if (options_.goal == Goal::fastest || best_.worst() == kInfinity) return false;
    const double server = problem_.servers[server_].hourly.value * time;
    return (alone + server) * kSlack > best_.worst() * 3600 - lead_;
  }

  double value_for_money(std::size_t k) const {
    const Kind& kind = problem_.kinds[k];
    const auto at = static_cast<std::size_t>(kind.existing);
    const double price = kind.hourly[at + 1] - kind.hourly[at];
    return line_ ? price * effort(k, 1) / bounds_.rate[k] : price / bounds_.rate[k];
  }

  /// Work per second if all workers were of this kind and made `rate` updates per second each.
  double effort(std::size_t k, double rate) const {
    return rate * (line_->intercept + line_->slope * problem_.kinds[k].worker.batch);
  }

  /// Least work of any cluster of the tier.
  double tier_work() const {
    double smallest = kInfinity;
    double largest = 0;
    double all = 0;
    for (const Kind& kind : problem_.kinds) {
      if (kind.limit() == 0) continue;
      smallest = std::min(smallest, kind.worker.batch);
      largest = std::max(largest, kind.worker.batch);
      all += kind.limit() * kind.worker.batch;
    }
    const bool together = problem_.job.exchange != Exchange::pipeline && problem_.job.sync == Sync::bsp;
    return least_work(problem_, workers_, smallest, together ? std::min(all, workers_ * largest) : largest, 0);
  }

  /// m: how much of A one unit of U may cost where nothing dearer than `cost` is of interest.
  double exchange_rate(double cost) const {
    if (options_.goal == Goal::fastest || cost == kInfinity) return kInfinity;
    const double hourly = std::max(0.0, cost * 3600 - lead_) / kSlack;
    if (!line_) return work_ > 0 ? hourly / work_ : kInfinity;
    double fastest = kInfinity;
    for (const std::size_t k : order_) fastest = std::min(fastest, effort(k, 1) / bounds_.updates[k]);
    for (std::size_t k = 0; k < counts_.size(); ++k) {
      if (problem_.kinds[k].existing > 0) fastest = std::min(fastest, effort(k, 1) / bounds_.updates[k]);
    }
    // No mix is faster than n workers of the kind that is fastest alone (Y / U^2 >= (sum sqrt(effort / n) / U)^2).
    const double time = fastest / workers_ * kSlack;
    const double server = problem_.servers[server_].hourly.value;
    return std::sqrt(std::max(0.0, hourly - server * time));
  }

  /// A worker's terms at an update rate between its slowest and its fastest; the sums are concave in the rate, so an
  /// end is the least.
  std::array<double, kSums> terms(std::size_t k, int machine) const {
    const auto high = terms_at(k, machine, bounds_.updates[k], bounds_.rate[k]);
    if (bounds_.slowed[k] == bounds_.updates[k]) return high;
    auto low = terms_at(k, machine, bounds_.slowed[k], bounds_.rate[k] * bounds_.slowed[k] / bounds_.updates[k]);
    for (std::size_t j = 0; j < kSums; ++j) low[j] = std::min(low[j], high[j]);
    return low;
  }
  std::array<double, kSums> terms_at(std::size_t k, int machine, double updates, double rate) const {
    const Kind& kind = problem_.kinds[k];
    const auto at = static_cast<std::size_t>(machine);
    const double price = kind.hourly[at + 1] - kind.hourly[at];
    const double amount = line_ ? std::sqrt(price * effort(k, updates)) : price;
    double timely = rate * discounts_[k];
    if (line_)
      timely = time_limit_ == kInfinity
                   ? 0
                   : updates * std::sqrt(discounts_[k] * time_limit_) - std::sqrt(effort(k, updates) / workers_);
    std::array<double, kSums> result{};
    for (std::size_t j = 0; j < kMultipliers.size(); ++j) {
      result[j] = rate_ == kInfinity ? -kInfinity
                                     : amount - rate_ * (line_ ? updates : rate) - kMultipliers[j] * unit_ * timely;
    }
    result.back() = -timely;
    return result;
  }

  void prepare(double cost) {
    rate_ = exchange_rate(cost);
    // A multiplier of 1 makes being in time worth as much as being cheap.
    unit_ = rate_ == kInfinity ? 0 : line_ ? (time_limit_ == kInfinity ? 0 : rate_ / std::sqrt(time_limit_)) : rate_;
    if (!line_ && time_limit_ == kInfinity) unit_ = 0;
    const int places = workers_ - existing_;
    terms_.clear();
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const Kind& kind = problem_.kinds[order_[i]];
      terms_.emplace_back();
      for (int j = 0; j < std::min(free_[i], places); ++j) terms_.back().push_back(terms(order_[i], kind.existing + j));
    }
    tables_.clear();
    for (std::size_t sum = 0; sum < kSums; ++sum) {
      tables_.emplace_back(
          free_, places, [&](std::size_t i, int machine) { return terms_[i][static_cast<std::size_t>(machine)][sum]; });
    }
  }

  Node root() const {
    Node node{.left = workers_ - existing_};
    const auto add = [&](double value, std::size_t sum) { node.sums[sum] += value; };
    for (std::size_t k = 0; k < counts_.size(); ++k) {
      for (int machine = 0; machine < problem_.kinds[k].existing; ++machine) {
        const auto own = terms(k, machine);
        for (std::size_t sum = 0; sum < kSums; ++sum) add(own[sum], sum);
      }
    }
    // The fixed parts: the servers' price, and the rate the deadline asks for.
    const double needed = line_ || time_limit_ == kInfinity ? 0 : work_ / time_limit_;
    for (std::size_t sum = 0; sum < kMultipliers.size(); ++sum) {
      if (!line_) add(problem_.servers[server_].hourly.value, sum);
      add(kMultipliers[sum] * unit_ * needed, sum);
    }
    add(needed, kSums - 1);
    return node;
  }

  bool hopeless(const Node& node) const {
    for (std::size_t sum = 0; sum < kSums; ++sum) {
      if (sum == kSums - 1 && time_limit_ == kInfinity) continue;
      // What is above zero by rounding alone must not be cut: it may be the best.
      const double least = node.sums[sum] + tables_[sum].sum(node.depth, node.left);
      if (least > 1e-9 * (std::fabs(node.sums[sum]) + 1e-12)) return true;
    }
    return false;
  }

  void leaf() {
    if (evaluator_.evaluate(counts_, server_, candidate_)) best_.offer(candidate_);
  }

  void visit(const Node& node) {
    if (++*nodes_ > options_.most_nodes) return;
    if (hopeless(node)) return;
    if (node.left == 0) return leaf();
    if (node.depth == order_.size()) return;
    const std::size_t k = order_[node.depth];
    const int most = std::min({free_[node.depth], node.left, room_for(problem_, counts_, server_, k)});
    Node child = node;
    child.depth = node.depth + 1;
    std::vector<Node>& children = scratch(node.depth);
    children.clear();
    children.push_back(child);
    for (int count = 1; count <= most; ++count) {
      --child.left;
      const auto& own = terms_[node.depth][static_cast<std::size_t>(count - 1)];
      for (std::size_t sum = 0; sum < kSums; ++sum) child.sums[sum] += own[sum];
      children.push_back(child);
    }
    // Most machines first: kinds are sorted by value for money, so good clusters are seen early and cut the rest.
    for (int count = most; count >= 0; --count) {
      counts_[k] += count;
      visit(children[static_cast<std::size_t>(count)]);
      counts_[k] -= count;
    }
  }
  std::vector<Node>& scratch(std::size_t depth) {
    // To its full length at once: visits of shallower nodes hold references into it.
    if (scratch_.size() <= depth) scratch_.resize(order_.size());
    return scratch_[depth];
  }

  const Problem& problem_;
  std::size_t server_;
  int workers_;
  const RateBounds& bounds_;
  Evaluator& evaluator_;
  Best& best_;
  const SearchOptions& options_;
  std::optional<LinearWork> line_;
  std::vector<int> counts_;
  int existing_ = 0;
  std::vector<std::size_t> order_;  // kinds of which machines are to be had
  std::vector<int> free_;           // how many, in that order
  double work_ = 0;
  double time_limit_ = kInfinity;
  std::vector<double> discounts_;  // of each kind's rate, for the deadline
  double largest_discount_ = 1;
  double lead_ = 0;  // USD/h x s, paid by any cluster of the tier before training goes on
  double rate_ = kInfinity;
  double unit_ = 0;
  std::vector<std::vector<std::array<double, kSums>>> terms_;
  std::vector<SuffixSums> tables_;
  std::vector<std::vector<Node>> scratch_;
  long long* nodes_ = nullptr;
  Candidate candidate_;
};

/// Lower bound on the objective of every cluster with this server choice and at least n workers; never falls with n.
double bound_beyond(const Problem& problem, const ServerChoice& server, const RateBounds& bounds, int workers,
                    Goal goal) {
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
  double spent = work * std::max(ratio, price / bounds.cap_beyond);
  if (const auto line = linear_work(problem, workers)) {
    // The cheapest mix costs at least what the cheapest kind alone would (P Y / U^2 >= (S / U)^2).
    double alone = kInfinity;
    for (std::size_t k = 0; k < problem.kinds.size(); ++k) {
      const Kind& kind = problem.kinds[k];
      if (kind.limit() == 0) continue;
      alone = std::min(alone, kind.hourly[1] * (line->intercept + line->slope * kind.worker.batch) / bounds.updates[k]);
    }
    spent = std::max(spent, alone);
  }
  return (spent + problem.recovery.count() * price) / 3600 * kSlack;
}

}  // namespace

SearchResult exact_search(const Problem& problem, const SearchOptions& options) {
  if (has_barrier(problem)) return barrier_search(problem, options);
  Evaluator evaluator(problem);
  Best best(problem, options);
  int machines = 0;
  int existing = 0;
  for (const Kind& kind : problem.kinds) {
    machines += kind.limit();
    existing += kind.existing;
  }
  const auto objective = [&](const Candidate& c) { return options.goal == Goal::cheapest ? c.cost : c.time; };
  climb(problem, evaluator, best);
  if (options.most_nodes == 0)
    return {.best = best.list(), .evaluated = evaluator.evaluated(), .gap = 1, .unproven = 0};
  long long nodes = 0;
  double unproven = kInfinity;  // least bound among what was not searched
  int bounded = 0;
  for (std::size_t server = 0; server < problem.servers.size(); ++server) {
    for (int workers = std::max(problem.fewest, existing); workers <= std::min(machines, problem.most); ++workers) {
      const RateBounds bounds = rate_bounds(problem, problem.servers[server], workers);
      const double beyond = bound_beyond(problem, problem.servers[server], bounds, workers, options.goal);
      if (beyond > best.worst()) break;
      // Out of nodes, tiers are still bounded one by one, for a gap that says something, but not for ever.
      if (workers > kMostWorkers || bounded > kMostBounded) {
        unproven = std::min(unproven, beyond);
        break;
      }
      Tier tier(problem, server, workers, bounds, evaluator, best, options);
      if (nodes <= options.most_nodes && tier.explore(nodes)) continue;
      if (!options.bound_the_rest)
        return {.best = best.list(), .evaluated = evaluator.evaluated(), .gap = 1, .unproven = 0};
      unproven = std::min(unproven, std::max(beyond, tier.least_cost()));
      ++bounded;
    }
  }
  SearchResult result{.best = best.list(), .evaluated = evaluator.evaluated(), .unproven = std::max(0.0, unproven)};
  if (!result.best.empty()) {
    const double value = objective(result.best.front());
    result.optimal = unproven >= value;
    result.gap = result.optimal ? 0 : (value - result.unproven) / value;
  } else {
    result.optimal = unproven == kInfinity;
  }
  return result;
}

}  // namespace mayfly
