#include "predict/closed_queue.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace mayfly {
namespace {

/// Exact mean-value analysis of one class, the textbook recursion.
double mva(int customers, double think, double service) {
  double queue = 0;
  double rate = 0;
  for (int n = 1; n <= customers; ++n) {
    const double response = service * (1 + queue);
    rate = n / (think + response);
    queue = rate * response;
  }
  return rate;
}

std::vector<double> rates(const std::vector<CycleClass>& classes) {
  std::vector<double> result(classes.size());
  closed_queue_rates(classes, result);
  return result;
}

// Two customers, Z = D = 1: one alone has X = 1/2 and queue 1/2; two respond in 1.5 s, X = 2 / 2.5 = .8.
TEST(ClosedQueue, TwoCustomersByHand) { EXPECT_NEAR(rates({{1, 1, 2}})[0], .8, 1e-14); }

TEST(ClosedQueue, EqualsMeanValueAnalysisForOneClass) {
  for (const int customers : {1, 2, 3, 7, 8, 31, 64, 100, 127}) {
    for (const double service : {1e-6, .01, .1, 1.0, 50.0}) {
      EXPECT_NEAR(rates({{1, service, customers}})[0] / mva(customers, 1, service), 1, 1e-11)
          << customers << " " << service;
    }
  }
}

TEST(ClosedQueue, LargeClustersUseTheOtherQuadrature) {
  for (const int customers : {128, 200, 1000}) {
    for (const double service : {1e-4, .01, .1, 1.0}) {
      EXPECT_NEAR(rates({{1, service, customers}})[0] / mva(customers, 1, service), 1, 1e-9)
          << customers << " " << service;
    }
  }
}

/// Exact multi-class mean-value analysis for two classes.
std::pair<double, double> two_class_mva(const CycleClass& a, const CycleClass& b) {
  std::vector<std::vector<double>> queue(static_cast<std::size_t>(a.count) + 1,
                                         std::vector<double>(static_cast<std::size_t>(b.count) + 1));
  double xa = 0;
  double xb = 0;
  for (std::size_t i = 0; i <= static_cast<std::size_t>(a.count); ++i) {
    for (std::size_t j = 0; j <= static_cast<std::size_t>(b.count); ++j) {
      const double ra = i > 0 ? a.service * (1 + queue[i - 1][j]) : 0;
      const double rb = j > 0 ? b.service * (1 + queue[i][j - 1]) : 0;
      xa = i > 0 ? static_cast<double>(i) / (a.think + ra) : 0;
      xb = j > 0 ? static_cast<double>(j) / (b.think + rb) : 0;
      queue[i][j] = xa * ra + xb * rb;
    }
  }
  return {xa, xb};
}

TEST(ClosedQueue, EqualsMultiClassMeanValueAnalysis) {
  for (const auto& [a, b] : {std::pair<CycleClass, CycleClass>{{1, .1, 5}, {3, .1, 3}},
                             {{.2, .3, 4}, {1, .05, 9}},
                             {{10, 1, 12}, {2, 2, 6}}}) {
    const auto x = rates({a, b});
    const auto [xa, xb] = two_class_mva(a, b);
    EXPECT_NEAR(x[0] / xa, 1, 1e-11);
    EXPECT_NEAR(x[1] / xb, 1, 1e-11);
  }
}

TEST(ClosedQueue, WithoutServiceNobodyWaits) { EXPECT_DOUBLE_EQ(rates({{4, 0, 8}})[0], 2); }

TEST(ClosedQueue, NeverExceedsTheStation) { EXPECT_LE(rates({{.001, .1, 100}})[0], 10 * (1 + 1e-12)); }

}  // namespace
}  // namespace mayfly
