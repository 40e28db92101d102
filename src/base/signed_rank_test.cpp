#include "base/signed_rank.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/rng.h"

namespace mayfly {
namespace {

// Tables of Wilcoxon's signed ranks: critical value 8 for ten values, two-sided 5 %.
TEST(SignedRanks, LeaveOutAsManyAsTheTableSays) {
  std::vector<double> values;
  for (int i = 0; i < 10; ++i) values.push_back(1 << i);
  const auto interval = signed_rank_interval(values);
  // The nine smallest means of two: 1, 1.5, 2, 2.5, 3, 4, 4.5, 5, 6.
  EXPECT_DOUBLE_EQ(interval.low, 6);
  // The nine largest: 512, 384, 320, 288, 272, 264, 260, 258, 257... the ninth is 256.5 + 0.5.
  EXPECT_DOUBLE_EQ(interval.high, 257);
}

TEST(SignedRanks, CoverTheCentreInNineteenOfTwentyCases) {
  Rng random(3);
  int covered = 0;
  constexpr int kCases = 2000;
  for (int i = 0; i < kCases; ++i) {
    std::vector<double> values(8);
    for (double& value : values) value = 5 + random.normal();
    const auto interval = signed_rank_interval(values);
    covered += interval.low <= 5 && 5 <= interval.high ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(covered) / kCases, 0.961, 0.015);  // 1 - 2 * 5/256
}

TEST(SignedRanks, AreMovedLittleByAWildValue) {
  const std::vector<double> values = {1.0, 1.1, 0.9, 1.05, 0.95, 1.02, 0.98, 40};
  EXPECT_NEAR(signed_rank_interval(values).value, 1.02, 0.02);
  EXPECT_EQ(signed_rank_interval(std::vector<double>{3}), (Centre{3, 3, 3}));
}

}  // namespace
}  // namespace mayfly
