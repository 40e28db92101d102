#include "vault/store_transfer.h"

#include <gtest/gtest.h>

namespace mayfly {
namespace {

constexpr std::uint64_t kMebibyte = std::uint64_t{1} << 20;

// Below 1,600 MiB a hundredth is less than the least part, from 6,400 MiB on more than the usual most. 10,000 parts of
// 64 MiB are 640,000 MiB.
TEST(PartsOf, AFileAreSixteenToSixtyFourMebibytes) {
  EXPECT_EQ(parts_of(1).count, 1);
  EXPECT_EQ(parts_of(16 * kMebibyte).count, 1);
  EXPECT_EQ(parts_of(16 * kMebibyte + 1).count, 2);
  EXPECT_EQ(parts_of(1000 * kMebibyte).part_bytes, 16 * kMebibyte);
  EXPECT_EQ(parts_of(1000 * kMebibyte).count, 63);
  EXPECT_EQ(parts_of(3200 * kMebibyte).part_bytes, 32 * kMebibyte);
  EXPECT_EQ(parts_of(100'000 * kMebibyte).part_bytes, 64 * kMebibyte);
  EXPECT_LE(parts_of(5'000'000 * kMebibyte).count, 10000);
}

}  // namespace
}  // namespace mayfly
