#include "predict/shapes.h"

#include <gtest/gtest.h>

#include "support/problems.h"

namespace mayfly {
namespace {

struct Row {
  int from, to;
  Shape best;
};
void expect_best(const std::string& profile, const std::vector<Row>& rows) {
  const auto shapes = pipeline_shapes(support::shipped_profile(profile));
  ASSERT_TRUE(shapes) << shapes.error().message;
  for (const Row& row : rows) {
    for (int n = row.from; n <= row.to; ++n) {
      const auto best = shapes->best(n);
      ASSERT_TRUE(best) << n;
      EXPECT_EQ((*shapes)[*best], row.best) << profile << " on " << n;
    }
  }
  EXPECT_FALSE(shapes->best(1));
}

// The column "throughut-opt" of Parcae's released choices, and the same rule below ten machines.
TEST(Shapes, BestForEachNumberOfMachinesIsParcaesForBert) {
  expect_best("parcae-bert", {{2, 2, {1, 2}},
                              {3, 3, {1, 3}},
                              {4, 5, {2, 2}},
                              {6, 7, {3, 2}},
                              {8, 8, {4, 2}},
                              {9, 9, {3, 3}},
                              {10, 11, {5, 2}},
                              {12, 13, {6, 2}},
                              {14, 14, {7, 2}},
                              {15, 15, {5, 3}},
                              {16, 19, {4, 4}},
                              {20, 20, {10, 2}},
                              {21, 21, {7, 3}},
                              {22, 23, {11, 2}},
                              {24, 25, {8, 3}},
                              {26, 26, {13, 2}},
                              {27, 29, {9, 3}},
                              {30, 31, {10, 3}},
                              {32, 40, {8, 4}}});
}
TEST(Shapes, BestForEachNumberOfMachinesIsParcaesForResnet152) {
  expect_best("parcae-resnet152", {{2, 3, {1, 2}},
                                   {4, 5, {2, 2}},
                                   {6, 7, {3, 2}},
                                   {8, 9, {4, 2}},
                                   {10, 11, {5, 2}},
                                   {12, 13, {6, 2}},
                                   {14, 15, {7, 2}},
                                   {16, 21, {8, 2}},
                                   {22, 23, {11, 2}},
                                   {24, 27, {12, 2}},
                                   {28, 31, {14, 2}},
                                   {32, 40, {16, 2}}});
}

// 2 x 1 and 1 x 2 train alike: the narrower. Two machines are the fewest.
TEST(Shapes, OfEqualSpeedsTheNarrowestIsBest) {
  const Shapes shapes({{2, 1}, {1, 2}, {3, 1}}, {5, 5, 4});
  EXPECT_EQ(shapes[*shapes.best(3)], (Shape{1, 2}));
  EXPECT_EQ(shapes.best(1), std::nullopt);
  EXPECT_EQ(shapes.find({3, 1}), 2);
  EXPECT_EQ(shapes.find({3, 2}), std::nullopt);
  EXPECT_EQ(shapes.least_machines(), 2);
  EXPECT_EQ(shapes.most_machines(), 3);
}

// Of (1,2), (2,2), (1,3), (1,4): 3 is excluded, 4 too deep, and at least two pipelines are wanted. 8 samples / 2 s.
TEST(Shapes, KeepToTheLimitsOfTheProfile) {
  Profile profile{.name = "limits", .pipeline = PipelineProfile{.global_batch = 8}};
  EXPECT_FALSE(pipeline_shapes({.name = "none"}));
  EXPECT_FALSE(pipeline_shapes(profile));
  PipelineProfile& pipeline = *profile.pipeline;
  pipeline.min_stages = 2;
  pipeline.max_stages = 3;
  pipeline.min_data_parallel = 2;
  pipeline.excluded_stages = {3};
  pipeline.speeds = {{1, 2, Seconds(4), {}}, {2, 2, Seconds(2), {}}, {2, 3, Seconds(1), {}}, {2, 4, Seconds(1), {}}};
  const auto shapes = pipeline_shapes(profile);
  ASSERT_TRUE(shapes);
  ASSERT_EQ(shapes->size(), 1);
  EXPECT_EQ((*shapes)[0], (Shape{2, 2}));
  EXPECT_DOUBLE_EQ(shapes->speed(0), 4);
}

}  // namespace
}  // namespace mayfly
