#include "base/normal.h"

#include <gtest/gtest.h>

namespace mayfly {
namespace {

// Tables of the normal distribution: 0.9 below 1.281552, 0.95 below 1.644854, half below 0.
TEST(Normal, QuantilesAreThoseOfTheTables) {
  EXPECT_NEAR(normal_quantile(0.9), 1.281552, 1e-6);
  EXPECT_NEAR(normal_quantile(0.95), 1.644854, 1e-6);
  EXPECT_NEAR(normal_quantile(0.5), 0, 1e-9);
  EXPECT_NEAR(normal_share(-1.281552), 0.1, 1e-6);
}

}  // namespace
}  // namespace mayfly
