#include "plan/barrier_tier.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace mayfly {

double BarrierTier::step(const Worker& slow, double pace) const {
  Worker alike = slow;
  alike.compute = slow.fixed + slow.batch * workers_ / pace;
  const Group group{.worker = &alike, .count = workers_};
  return 1 / queue_speed(job_, {&group, 1}, problem_.servers[server_].pool).updates_per_s;
}

double BarrierTier::time(double pace) const { return work_ * step(*slow_, pace) + problem_.recovery.count(); }

bool BarrierTier::set(const std::vector<std::size_t>& kinds, std::size_t slow, std::optional<std::size_t> large) {
  slow_ = &problem_.kinds[slow].worker;
  order_.clear();
  free_.clear();
  pace_ = price_ = 0;
  places_ = workers_;
  price_ = problem_.servers[server_].hourly.value;
  counts_.assign(problem_.kinds.size(), 0);
  const auto take = [&](std::size_t k, int count) {
    counts_[k] += count;
    places_ -= count;
    pace_ += count * pace_of(problem_.kinds[k].worker);
  };
  for (const std::size_t k : kinds) take(k, problem_.kinds[k].existing);
  for (const std::size_t k : {slow, large.value_or(slow)}) {
    if (counts_[k] > 0) continue;
    if (places_ == 0) return false;
    take(k, 1);
    price_ += problem_.kinds[k].hourly[1];
  }
  begin_ = counts_;
  least_price_ = least_ratio_ = kNever;
  best_pace_ = 0;
  int room = 0;
  for (const std::size_t k : kinds) {
    const int left = problem_.kinds[k].limit() - counts_[k];
    if (left <= 0) continue;
    order_.push_back(k);
    free_.push_back(left);
    room += left;
    const double pace = pace_of(problem_.kinds[k].worker);
    least_price_ = std::min(least_price_, price(k, 0));
    least_ratio_ = std::min(least_ratio_, price(k, 0) / pace);
    best_pace_ = std::max(best_pace_, pace);
  }
  return places_ >= 0 && room >= places_;
}

Limits BarrierTier::least() const {
  const double pace = pace_ + (places_ > 0 ? places_ * best_pace_ : 0);
  const double least_time = time(pace);
  const double cheapest = price_ + (places_ > 0 ? places_ * least_price_ : 0);
  return {.time = least_time, .cost = cheapest * least_time};
}

bool BarrierTier::prepare(const Limits& limits) {
  const double most = pace_ + (places_ > 0 ? places_ * best_pace_ : 0);
  double low = pace_;
  if (time(most) > limits.time * (1 + kRounding)) return false;
  if (limits.time < kNever && time(low) > limits.time) low = least_pace(low, most, limits.time);
  timely_ = low;
  if (limits.cost == kNever) {
    lines_ = 0;
    return true;
  }
  if (!narrow(low, most, limits.cost)) return false;
  const auto worth = [&](double pace) { return limits.cost / time(pace); };
  const auto slope_at = [&](double pace) {
    const double small = 1e-5 * pace;
    return std::max(0.0, (worth(pace) - worth(pace - small)) / small);  // to the left: no less steep
  };
  lines_ = 0;
  const double ratio = std::pow(most_ / least_, 1.0 / (kTangents - 1));
  for (std::size_t g = 0; g < kTangents && (g == 0 || ratio > 1); ++g) {
    const double at = std::min(most_, least_ * std::pow(ratio, static_cast<double>(g)));
    add_line(slope_at(at), at, worth(at));
  }
  const double value = worth(timely_);
  for (const double steeper : kSteeper) add_line(steeper * slope_at(timely_), timely_, value);
  return true;
}

bool BarrierTier::plainly_hopeless() const {
  for (std::size_t line = 0; line < lines_; ++line) {
    double least = places_ > 0 ? kNever : 0;
    for (const std::size_t k : order_) least = std::min(least, term(line, k, 0));
    if (above(line, price_ - slopes_[line] * pace_ + (places_ > 0 ? places_ * least : 0))) return true;
  }
  return false;
}

void BarrierTier::make_tables() {
  // Cheapest progress first: the first clusters seen are good ones.
  std::vector<std::size_t> places(order_.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  const auto ratio = [&](std::size_t i) { return price(order_[i], 0) / pace_of(problem_.kinds[order_[i]].worker); };
  std::stable_sort(places.begin(), places.end(), [&](auto a, auto b) { return ratio(a) < ratio(b); });
  std::vector<std::size_t> order;
  std::vector<int> free;
  for (const std::size_t i : places) {
    order.push_back(order_[i]);
    free.push_back(std::min(free_[i], places_));
  }
  order_ = std::move(order);
  free_ = std::move(free);
  tables_.clear();
  for (std::size_t line = 0; line < lines_; ++line) {
    tables_.emplace_back(free_, places_, [&](std::size_t i, int machine) { return term(line, order_[i], machine); });
  }
  paces_ = SuffixSums(free_, places_, [&](std::size_t i, int) { return -pace_of(problem_.kinds[order_[i]].worker); });
  scratch_.resize(order_.size());
}

double BarrierTier::least_cost(const Limits& limits) {
  double low = least().cost;
  double high = limits.cost;
  if (high == kNever) return low;
  while (high - low > 1e-2 * high) {
    const double middle = (low + high) / 2;
    bool none = !prepare({.time = limits.time, .cost = middle}) || plainly_hopeless();
    if (!none) {
      make_tables();
      none = hopeless(root());
    }
    (none ? low : high) = middle;
  }
  return low;
}

BarrierTier::Node BarrierTier::root() const {
  Node node{.left = places_, .pace = pace_};
  for (std::size_t line = 0; line < lines_; ++line) node.sums[line] = price_ - slopes_[line] * pace_;
  return node;
}

bool BarrierTier::hopeless(const Node& node) const {
  const double reach = node.pace - paces_.sum(node.depth, node.left);
  if (!(reach >= timely_ * (1 - kRounding))) return true;
  for (std::size_t line = 0; line < lines_; ++line) {
    if (above(line, node.sums[line] + tables_[line].sum(node.depth, node.left))) return true;
  }
  return false;
}

bool BarrierTier::visit(const Node& node, Evaluator& evaluator, Best& best, long long& nodes, long long most_nodes) {
  if (++nodes > most_nodes) return false;
  if (hopeless(node)) return true;
  if (node.left == 0) {
    if (evaluator.evaluate(counts_, server_, candidate_)) best.offer(candidate_);
    return true;
  }
  if (node.depth == order_.size()) return true;
  const std::size_t k = order_[node.depth];
  Node child = node;
  child.depth = node.depth + 1;
  std::vector<Node>& children = scratch_[node.depth];
  children.assign(1, child);
  const int most = std::min({free_[node.depth], node.left, room_for(problem_, counts_, server_, k)});
  for (int count = 1; count <= most; ++count) {
    --child.left;
    child.pace += pace_of(problem_.kinds[k].worker);
    for (std::size_t line = 0; line < lines_; ++line) child.sums[line] += term(line, k, count - 1);
    children.push_back(child);
  }
  // Most machines first: kinds are sorted by value for money, so good clusters are seen early.
  for (std::size_t count = children.size(); count-- > 0;) {
    counts_[k] += static_cast<int>(count);
    const bool done = visit(children[count], evaluator, best, nodes, most_nodes);
    counts_[k] -= static_cast<int>(count);
    if (!done) return false;
  }
  return true;
}

double BarrierTier::price(std::size_t k, int machine) const {
  const auto at = static_cast<std::size_t>(begin_[k]) + static_cast<std::size_t>(machine);
  return problem_.kinds[k].hourly[at + 1] - problem_.kinds[k].hourly[at];
}

double BarrierTier::term(std::size_t line, std::size_t k, int machine) const {
  return price(k, machine) - slopes_[line] * pace_of(problem_.kinds[k].worker);
}

bool BarrierTier::above(std::size_t line, double least) const {
  return least - limits_[line] > kRounding * (std::fabs(limits_[line]) + std::fabs(slopes_[line] * pace_) + price_);
}

void BarrierTier::add_line(double slope, double at, double value) {
  slopes_[lines_] = slope;
  limits_[lines_] = value - slope * at;
  ++lines_;
}

double BarrierTier::least_pace(double low, double high, double most_time) const {
  low = std::max(low, 1e-12 * high);
  for (int i = 0; i < 60 && high > low * (1 + 1e-12); ++i) {
    const double middle = std::sqrt(low * high);
    (time(middle) > most_time ? low : high) = middle;
  }
  return low;
}

bool BarrierTier::narrow(double low, double high, double cost) {
  constexpr int kSteps = 48;
  const double cheapest = price_ + (places_ > 0 ? places_ * least_price_ : 0);
  const double factor = std::pow(high / std::max(low, 1e-9 * high), 1.0 / kSteps);
  least_ = kNever;
  most_ = 0;
  double left = std::max(low, 1e-9 * high);
  for (int i = 0; i < kSteps; ++i) {
    const double right = i + 1 == kSteps ? high : left * factor;
    // Of the paces between: not cheaper than at the left, nor slower than at the right.
    const double price = std::max(cheapest, price_ + (left > pace_ ? (left - pace_) * least_ratio_ : 0));
    if (!(price * time(right) > cost * (1 + kRounding))) {
      least_ = std::min(least_, left);
      most_ = std::max(most_, right);
    }
    left = right;
    if (factor <= 1) break;
  }
  return least_ < kNever;
}

}  // namespace mayfly
