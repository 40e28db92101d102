#include "data/rehearsal.h"

#include <gtest/gtest.h>

#include "support/numbered_dataset.h"

namespace mayfly {
namespace {

using support::NumberedDataset;

TEST(Rehearsal, ReadsTwiceAndPreparesOnceWhatItWasAskedFor) {
  const NumberedDataset data(100);
  const auto found = rehearse(data, SampleOrder(100, 1), {}, 30, 2);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->samples, 30);
  EXPECT_EQ(found->bytes, 30.0 * sizeof(std::int64_t));
  EXPECT_EQ(data.fetched, 60);
  EXPECT_EQ(data.prepared, 30);
  EXPECT_GT(found->prepare.count(), 0);
}

TEST(Rehearsal, HoldsTheFirstReadingToTheRateOfStorage) {
  const NumberedDataset data(100);
  const auto found = rehearse(data, SampleOrder(100, 1), BytesPerSecond{8000}, 100, 2);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_GE(found->read.count(), 0.1);  // 800 bytes
}

TEST(Rehearsal, AsksForNoMoreThanThereIs) {
  const NumberedDataset data(10);
  EXPECT_EQ(rehearse(data, SampleOrder(10, 1), {}, 30, 2)->samples, 10);
  EXPECT_EQ(rehearse(data, SampleOrder(10, 1), {}, 0, 2)->samples, 0);
}

TEST(Rehearsal, SaysWhatCannotBeReadOrPrepared) {
  NumberedDataset data(10);
  data.lost = 3;
  EXPECT_EQ(rehearse(data, SampleOrder(10, 1), {}, 10, 2).error().message, "file of 3: cannot read");
  data.lost = -1;
  data.broken = 4;
  EXPECT_EQ(rehearse(data, SampleOrder(10, 1), {}, 10, 2).error().message, "file of 4: not a sample");
}

}  // namespace
}  // namespace mayfly
