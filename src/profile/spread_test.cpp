#include "profile/spread.h"

#include <gtest/gtest.h>

#include <vector>

namespace mayfly {
namespace {

TEST(MeasuredMean, TheFirstTenthIsWarmUp) {
  std::vector<double> values(40, 1.0);
  std::fill_n(values.begin(), 4, 9.0);
  const MeasuredMean found = estimated(values);
  EXPECT_EQ(found.warm_up, 4);
  EXPECT_EQ(found.counted, 36);
  EXPECT_DOUBLE_EQ(found.mean, 1);
  EXPECT_EQ(found.outliers, 0);
  // At least 3, at most 20, and of very few the first half.
  EXPECT_EQ(estimated(std::vector<double>(10, 1.0)).warm_up, 3);
  EXPECT_EQ(estimated(std::vector<double>(1000, 1.0)).warm_up, 20);
  EXPECT_EQ(estimated(std::vector<double>(5, 1.0)).warm_up, 2);
  EXPECT_EQ(estimated(std::vector<double>(1, 1.0)).counted, 1);
  EXPECT_EQ(estimated({}).counted, 0);
}

// 30 values, 3 of warm-up; 27 of 1.0 and 1.1 in turn with two of 10: those are 2 of 27, less than a tenth.
TEST(MeasuredMean, AFewFarValuesAreLeftOutMoreAreHowTheJobIs) {
  std::vector<double> values;
  for (int i = 0; i < 30; ++i) values.push_back(i % 2 == 0 ? 1.0 : 1.1);
  values[10] = values[20] = 10;
  const MeasuredMean few = estimated(values);
  EXPECT_EQ(few.outliers, 2);
  EXPECT_EQ(few.counted, 25);
  EXPECT_NEAR(few.mean, 1.05, 0.01);
  for (const std::size_t i : {12U, 14U, 16U}) values[i] = 10;
  const MeasuredMean many = estimated(values);
  EXPECT_EQ(many.outliers, 0);
  EXPECT_GT(many.mean, 2);
}

// 23 values, 3 of warm-up, 20 left in
// 10 stretches of 2 with means 1, 2, 1, 2, ...: mean 1.5, sd sqrt(10 * .25 / 9) = .527046, t(9) = 2.262:
// interval 2.262 * .527046 / sqrt(10) = .377003; relative sd .351364.
TEST(MeasuredMean, TheIntervalIsStudentsOverStretches) {
  std::vector<double> values(3, 100.0);
  for (int i = 0; i < 10; ++i) values.insert(values.end(), 2, i % 2 == 0 ? 1.0 : 2.0);
  const MeasuredMean found = estimated(values);
  EXPECT_EQ(found.counted, 20);
  EXPECT_DOUBLE_EQ(found.mean, 1.5);
  EXPECT_NEAR(found.interval, 0.377003, 1e-5);
  EXPECT_NEAR(found.relative_sd, 0.351364, 1e-5);
  EXPECT_FALSE(tight(found));
}

// Three stretches are the fewest: 3 of warm-up, then 1.00 1.00 1.01 1.01 0.99 0.99: sd .01, t(2) = 4.303, interval
// 4.303 * .01 / sqrt(3) = .024843: within 3 %, not within 2 %.
TEST(MeasuredMean, IsTightWhereItsIntervalIsSmall) {
  const std::vector<double> values{1, 1, 1, 1.00, 1.00, 1.01, 1.01, 0.99, 0.99};
  const MeasuredMean found = estimated(values);
  EXPECT_NEAR(found.interval, 0.024843, 1e-5);
  EXPECT_TRUE(tight(found, 0.03));
  EXPECT_FALSE(tight(found, 0.02));
  // Too few to tell is not tight.
  EXPECT_FALSE(tight(estimated(std::vector<double>(6, 1.0))));
}

TEST(LinkFit, FindsLatencyAndRate) {
  const std::vector<double> bytes{1e3, 1e5, 1e7};
  std::vector<double> seconds;
  for (const double size : bytes) seconds.push_back(2e-4 + size / 1e9);
  const LinkFit fit = link_fit(bytes, seconds);
  EXPECT_NEAR(fit.latency_s, 2e-4, 1e-9);
  EXPECT_NEAR(fit.bytes_per_s, 1e9, 1e3);
  EXPECT_NEAR(fit.relative_sd, 0, 1e-6);
}

TEST(LinkFit, TimesThatFallWithTheSizeTellNothing) {
  EXPECT_EQ(link_fit(std::vector<double>{1e3, 1e6}, std::vector<double>{2e-3, 1e-3}).bytes_per_s, 0);
  EXPECT_EQ(link_fit(std::vector<double>{1e3}, std::vector<double>{2e-3}).bytes_per_s, 0);
}

}  // namespace
}  // namespace mayfly
