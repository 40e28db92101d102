#include "predict/closed_queue.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace mayfly {
namespace {

// Terms: with Z_c, D_c, N_c the think time, service demand and number of class c, the normalising constant of the
// product form is  G = (1 / prod N_c!) * integral_0^inf e^-t prod_c (Z_c + D_c t)^N_c dt,  and class c cycles at
// X_c = N_c * integral e^-t F(t) / (Z_c + D_c t) dt / integral e^-t F(t) dt,  F = prod_c (Z_c + D_c t)^N_c.
// F is a polynomial of degree N, so an n-point Gauss-Laguerre rule with 2n - 1 >= N gives both integrals exactly.

constexpr int kMostNodes = 64;

struct LaguerreRule {
  std::array<double, kMostNodes> node{};
  std::array<double, kMostNodes> log_weight{};
};

/// Newton's method on L_n from the usual first guesses (Stroud and Secrest); weights by w_i = x_i / ((n+1)
/// L_{n+1}(x_i))^2.
LaguerreRule laguerre_rule(int n) {
  LaguerreRule rule;
  double x = 0;
  for (int i = 0; i < n; ++i) {
    if (i == 0) {
      x = 3.0 / (1 + 2.4 * n);
    } else if (i == 1) {
      x += 15.0 / (1 + 2.5 * n);
    } else {
      const double k = i - 1;
      x += (1 + 2.55 * k) / (1.9 * k) * (x - rule.node[static_cast<std::size_t>(i - 2)]);
    }
    double previous = 0;
    for (int iteration = 0; iteration < 100; ++iteration) {
      double value = 1;
      previous = 0;
      for (int k = 1; k <= n; ++k) {
        const double before = previous;
        previous = value;
        value = ((2 * k - 1 - x) * previous - (k - 1) * before) / k;
      }
      const double slope = n * (value - previous) / x;
      const double step = value / slope;
      x -= step;
      if (std::fabs(step) <= 1e-15 * x) break;
    }
    // At a root L_{n+1} = -n/(n+1) L_{n-1}, so (n+1) L_{n+1} = -n L_{n-1}.
    const auto at = static_cast<std::size_t>(i);
    rule.node[at] = x;
    rule.log_weight[at] = std::log(x) - 2 * std::log(std::fabs(n * previous));
  }
  return rule;
}

const LaguerreRule& shared_rule(int n) {
  static const auto rules = [] {
    std::array<LaguerreRule, kMostNodes + 1> all{};
    for (int points = 1; points <= kMostNodes; ++points) all[static_cast<std::size_t>(points)] = laguerre_rule(points);
    return all;
  }();
  return rules[static_cast<std::size_t>(n)];
}

double log_of_product(std::span<const CycleClass> classes, double t) {
  double sum = 0;
  for (const CycleClass& c : classes) sum += c.count * std::log(c.think + c.service * t);
  return sum;
}

/// Accumulates sum w F and sum w F / (Z_c + D_c t) with running rescaling, so that no power overflows.
class Integrals {
 public:
  Integrals(std::span<const CycleClass> classes, std::span<double> rates) : classes_(classes), rates_(rates) {
    for (double& rate : rates_) rate = 0;
  }
  void add(double log_weight, double t) {
    const double log_term = log_weight + log_of_product(classes_, t);
    if (log_term > top_) {
      const double shrink = std::exp(top_ - log_term);
      total_ *= shrink;
      for (double& rate : rates_) rate *= shrink;
      top_ = log_term;
    }
    const double term = std::exp(log_term - top_);
    total_ += term;
    for (std::size_t c = 0; c < classes_.size(); ++c) rates_[c] += term / (classes_[c].think + classes_[c].service * t);
  }
  void finish() {
    for (std::size_t c = 0; c < classes_.size(); ++c) rates_[c] *= classes_[c].count / total_;
  }

 private:
  std::span<const CycleClass> classes_;
  std::span<double> rates_;
  double total_ = 0;
  double top_ = -std::numeric_limits<double>::infinity();
};

/// More customers than the rules reach: the trapezoidal rule in x = log t, where the logarithm of the integrand,
/// h(x) = x - e^x + sum N_c log(Z_c + D_c e^x), has one peak. The rule converges exponentially because the integrand
/// vanishes at both ends; steps of a third of the peak's width leave an error below 1e-12.
void add_around_peak(std::span<const CycleClass> classes, Integrals& integrals) {
  // h'(x) = 1 - e^x + sum N_c D_c e^x / (Z_c + D_c e^x) falls from 1 to minus infinity: bisection finds its zero.
  const auto slope = [&](double x) {
    const double t = std::exp(x);
    double sum = 1 - t;
    for (const CycleClass& c : classes) sum += c.count * c.service * t / (c.think + c.service * t);
    return sum;
  };
  double low = -1;
  double high = 60;
  while (high - low > 1e-6) (slope((low + high) / 2) > 0 ? low : high) = (low + high) / 2;
  const double peak = low;
  constexpr double kSmall = 1e-4;
  const double curvature = (slope(peak - kSmall) - slope(peak + kSmall)) / (2 * kSmall);
  const double step = 1 / std::sqrt(curvature) / 3;
  const auto log_term = [&](double x) { return x - std::exp(x) + log_of_product(classes, std::exp(x)); };
  const double top = log_term(peak);
  constexpr double kNegligible = -42;  // e^-42, below the last bit of the sum
  for (const double direction : {1.0, -1.0}) {
    for (int i = direction > 0 ? 0 : 1;; ++i) {
      const double x = peak + direction * i * step;
      if (log_term(x) - top < kNegligible) break;
      integrals.add(x - std::exp(x), std::exp(x));
    }
  }
}

// Two stations of load-dependent speed, alike for all classes. A station that holds k customers ends min(k, c) / S of
// them a second (c: parallel, S: service), and with  A(k) = prod_{i<=k} S / min(i, c),
//   G = (1 / prod N_c!) * sum_k k! H(k) [x^k] prod_c (Z_c + x)^N_c,    H(k) = sum_{i+j=k} A(i) A(j),
// as the ways to split k customers of all classes between two places add up to binomials. Times are divided by a scale
// and each factor by its sum, which makes the coefficients chances and keeps every number in range.
class PairedStations {
 public:
  PairedStations(std::span<const CycleClass> classes, double parallel, int customers) : classes_(classes) {
    const double service = classes.front().service;
    scale_ = service / parallel * std::max(1, customers) / std::exp(1.0);
    std::array<double, kMostPaired + 1> station{1};
    for (int k = 1; k <= customers; ++k) {
      const double speed = std::min(static_cast<double>(k), parallel);
      station[static_cast<std::size_t>(k)] = station[static_cast<std::size_t>(k - 1)] * parallel / speed;
    }
    double factor = 1;  // k! (service / parallel / scale)^k
    for (std::size_t k = 0; k <= static_cast<std::size_t>(customers); ++k) {
      if (k > 0) factor *= static_cast<double>(k) * std::exp(1.0) / customers;
      double both = 0;
      for (std::size_t i = 0; i <= k; ++i) both += station[i] * station[k - i];
      weight_[k] = factor * both;
    }
  }
  /// G without one customer of class `missing`, in units that cancel in ratios; -1: of all.
  double constant(int missing) const {
    std::array<double, kMostPaired + 1> chance{1};
    std::size_t degree = 0;
    for (std::size_t c = 0; c < classes_.size(); ++c) {
      const double here = scale_ / (classes_[c].think + scale_);
      const int count = classes_[c].count - (static_cast<int>(c) == missing ? 1 : 0);
      for (int i = 0; i < count; ++i) {
        ++degree;
        for (std::size_t k = degree; k > 0; --k) chance[k] = chance[k] * (1 - here) + chance[k - 1] * here;
        chance[0] *= 1 - here;
      }
    }
    double sum = 0;
    for (std::size_t k = 0; k <= degree; ++k) sum += weight_[k] * chance[k];
    return sum;
  }
  double scale() const { return scale_; }

 private:
  std::span<const CycleClass> classes_;
  double scale_ = 1;
  std::array<double, kMostPaired + 1> weight_{};
};

}  // namespace

void closed_pair_rates(std::span<const CycleClass> classes, double parallel, std::span<double> rates) {
  MAYFLY_CHECK(classes.size() == rates.size() && !classes.empty(), "one rate per class");
  int customers = 0;
  for (const CycleClass& c : classes) customers += c.count;
  MAYFLY_CHECK(customers <= kMostPaired && parallel >= 1, "too many customers, or a station slower than alone");
  const PairedStations stations(classes, parallel, customers);
  const double all = stations.constant(-1);
  for (std::size_t c = 0; c < classes.size(); ++c) {
    if (classes[c].count == 0) {
      rates[c] = 0;
      continue;
    }
    const double without = stations.constant(static_cast<int>(c));
    rates[c] = classes[c].count * without / (all * (classes[c].think + stations.scale()));
  }
}

void closed_queue_rates(std::span<const CycleClass> classes, std::span<double> rates) {
  MAYFLY_CHECK(classes.size() == rates.size(), "one rate per class");
  int customers = 0;
  double demand = 0;
  for (const CycleClass& c : classes) {
    customers += c.count;
    demand += c.service;
  }
  if (demand == 0) {
    for (std::size_t c = 0; c < classes.size(); ++c) rates[c] = classes[c].count / classes[c].think;
    return;
  }
  Integrals integrals(classes, rates);
  const int nodes = customers / 2 + 1;
  if (nodes <= kMostNodes) {
    const LaguerreRule& rule = shared_rule(nodes);
    for (std::size_t i = 0; i < static_cast<std::size_t>(nodes); ++i) integrals.add(rule.log_weight[i], rule.node[i]);
  } else {
    add_around_peak(classes, integrals);
  }
  integrals.finish();
}

}  // namespace mayfly
