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

/// Exact mean-value analysis of one class at two stations alike whose speed depends on how many are there: the textbook
/// recursion over the chances of finding j of them.
double paired_mva(int customers, double think, double service, double parallel) {
  std::vector<double> chance{1};
  double rate = 0;
  for (int n = 1; n <= customers; ++n) {
    const auto speed = [&](std::size_t j) { return std::min(static_cast<double>(j), parallel) / service; };
    double response = 0;
    for (std::size_t j = 1; j <= chance.size(); ++j) response += static_cast<double>(j) / speed(j) * chance[j - 1];
    rate = n / (think + 2 * response);
    std::vector<double> next(chance.size() + 1);
    double busy = 0;
    for (std::size_t j = 1; j < next.size(); ++j) busy += next[j] = rate / speed(j) * chance[j - 1];
    next[0] = 1 - busy;
    chance = next;
  }
  return rate;
}

double paired(int customers, double think, double service, double parallel) {
  const CycleClass all{.think = think, .service = service, .count = customers};
  double rate = 0;
  closed_pair_rates({&all, 1}, parallel, {&rate, 1});
  return rate;
}

// Two customers, Z = 1 and 1 s at each station: one alone leaves X = 1/3 and 1/3 of a customer at each; two respond in
// 2 x 4/3 s, X = 2 / (11/3) = 6/11.
TEST(PairedStations, TwoCustomersByHand) { EXPECT_NEAR(paired(2, 1, 1, 1), 6.0 / 11, 1e-14); }

TEST(PairedStations, EqualMeanValueAnalysis) {
  for (const int customers : {1, 2, 3, 5, 8, 13}) {
    for (const double service : {1e-4, .1, 1.0, 20.0}) {
      for (const double parallel : {1.0, 1.5, 2.0, 4.0, 7.3}) {
        EXPECT_NEAR(paired(customers, 1, service, parallel) / paired_mva(customers, 1, service, parallel), 1, 1e-9)
            << customers << " " << service << " " << parallel;
      }
    }
  }
}

TEST(PairedStations, NobodyWaitsWhereAllFitAndManyAreHeldByTheStation) {
  EXPECT_NEAR(paired(100, 1, .5, 100), 100 / 2.0, 1e-9);
  EXPECT_NEAR(paired(127, 1, .5, 4), 4 / .5, .3);  // each station ends at most 8 a second
  EXPECT_LT(paired(127, 1, .5, 4), 8);
}

TEST(PairedStations, ClassesThatAreAlikeAreOne) {
  const std::vector<CycleClass> split{{1, .3, 2}, {1, .3, 0}, {1, .3, 3}};
  std::vector<double> each(3);
  closed_pair_rates(split, 1.7, each);
  EXPECT_NEAR(each[0] + each[2], paired(5, 1, .3, 1.7), 1e-12);
  EXPECT_NEAR(each[0] / each[2], 2.0 / 3, 1e-12);
  EXPECT_EQ(each[1], 0);
}

// Those who think longer come less often: with a slow class of one, what each does follows from the cycle that is left.
TEST(PairedStations, SlowClassesCycleLessOften) {
  const std::vector<CycleClass> mixed{{1, .3, 3}, {5, .3, 1}};
  std::vector<double> each(2);
  closed_pair_rates(mixed, 1, each);
  EXPECT_LT(each[1], 1 / 5.6);
  EXPECT_GT(each[1], 1 / (5 + .6 + .6 * 3));
  EXPECT_LT(each[0], paired(3, 1, .3, 1));
}

}  // namespace
}  // namespace mayfly
