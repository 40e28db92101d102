#include "run/whole_samples.h"

#include <gtest/gtest.h>

#include <limits>

namespace mayfly {
namespace {

TEST(WholeSamples, ComeBackAsTheyWere) {
  for (const std::int64_t samples : {std::int64_t{0}, std::int64_t{1}, kMostSamples - 1, kMostSamples})
    EXPECT_EQ(whole_samples(progress_of(samples)), samples);
}

TEST(WholeSamples, AnEstimateMayBeAnything) {
  EXPECT_EQ(wanted_samples(12.9), 12);
  EXPECT_EQ(wanted_samples(-1), 0);
  EXPECT_EQ(wanted_samples(1e300), kMostSamples);
  EXPECT_EQ(wanted_samples(std::numeric_limits<double>::infinity()), kMostSamples);
  EXPECT_EQ(wanted_samples(std::numeric_limits<double>::quiet_NaN()), kMostSamples);
}

}  // namespace
}  // namespace mayfly
