#include "predict/memory.h"

#include <gtest/gtest.h>

#include <utility>

#include "support/problems.h"

namespace mayfly {
namespace {

Catalog cards() {
  Catalog catalog{.name = "cards"};
  for (const auto& [name, gib] : {std::pair{"one", 48.0}, std::pair{"small", 24.0}}) {
    InstanceType type{.name = name, .gpu_count = 1};
    type.gpu = Gpu{.model = name, .memory_gib = gib};
    catalog.types.push_back(type);
  }
  return catalog;
}

// 24 GiB are 25.77 GB; of them the driver shows 25.56, and a framework gets 24.22 before it fails.
TEST(Memory, OfACardIsWhatTheDriverShows) {
  EXPECT_NEAR(memory_there(24), 25.564, 1e-3);
  EXPECT_NEAR(memory_usable(24), 24.224, 1e-3);
}

// Weights, gradients and Adam's two moments in fp32: 16 bytes a parameter, 128.48 GB of 8.03 billion. Shared by 8: all
// of it an eighth with ZeRO 3; with ZeRO 1 the moments alone, so 8 + 8 / 8 = 9 bytes.
TEST(Memory, OfStatesFollowsFromBytesAParameter) {
  Recipe recipe{.parameters = 8.03e9, .optimiser = Optimiser::adam};
  EXPECT_NEAR(state_memory(recipe, 8), 128.48, 1e-3);
  recipe.shard = Shard::parameters;
  EXPECT_NEAR(state_memory(recipe, 8), 16.06, 1e-3);
  recipe.shard = Shard::optimiser;
  EXPECT_NEAR(state_memory(recipe, 8), 72.27, 1e-3);
  recipe.shard = Shard::none;
  recipe.weights = Weights::half;
  EXPECT_NEAR(state_memory(recipe, 1), 64.24, 1e-3);
}

TEST(Memory, TransformersHaveUsualProportions) {
  const auto small = transformer_shape(1.3e9, 50368);
  EXPECT_NEAR(small.layers, 23.82, 0.01);
  EXPECT_NEAR(small.hidden, 2046.5, 0.1);
  const auto large = transformer_shape(70e9, 50368);
  EXPECT_NEAR(large.layers, 70.72, 0.01);
  EXPECT_NEAR(large.hidden, 9052.4, 0.1);
}

// ResNet-50 with momentum: 1.25 GB and 12 bytes of 25.6 million parameters are there without a sample, 1.557 GB.
// Of 8.11 GB with 120 samples the rest is theirs: with 256, 1.557 + 6.553 * 256 / 120 = 15.54 GB.
TEST(Memory, GrowsFromOneMeasuredBatch) {
  Profile profile{.recipe = {.parameters = 25.6e6, .optimiser = Optimiser::momentum}};
  profile.types["one"] = {.batch = 120, .batches = {{.batch = 120, .peak_mb = 8110}}};
  const auto need = memory_need(profile, profile.recipe, cards(), 256, 1);
  ASSERT_TRUE(need);
  EXPECT_EQ(need->basis, MemoryBasis::measured);
  EXPECT_NEAR(need->peak, 15.537, 2e-3);
  EXPECT_EQ(fits(*need, 24), Fits::yes);
  EXPECT_EQ(fits(*memory_need(profile, profile.recipe, cards(), 720, 1), 24), Fits::no);
}

// 7 billion parameters with Adam, shared by 8 GPUs: 14 GB of states each, 15.25 GB without a sample. Of 40 GB with 4
// samples 24.75 are theirs: with 8, 64.75 GB. On 16 GPUs the states take 7 GB less.
TEST(Memory, OfSharedStatesIsThatOfTheGpusThatShareThem) {
  Catalog catalog = cards();
  catalog.types[0].gpu_count = 8;
  Profile profile{.recipe = {.parameters = 7e9, .optimiser = Optimiser::adam, .shard = Shard::parameters}};
  profile.types["one"] = {.batch = 32, .batches = {{.batch = 32, .peak_mb = 40000}}};
  EXPECT_NEAR(memory_need(profile, profile.recipe, catalog, 8, 8)->peak, 64.75, 1e-9);
  EXPECT_NEAR(memory_need(profile, profile.recipe, catalog, 4, 16)->peak, 33.0, 1e-9);
}

// The same on one GPU takes 112 GB; 20 GB cannot have been its peak. Nor is it of use on 8 GPUs that share the states:
// 20 GB and 98 GB less. What the recipe says then is 14 + 1.25 GB, and nothing is certain.
TEST(Memory, APeakBelowTheStatesContradictsTheRecipe) {
  Catalog catalog = cards();
  Profile profile{.recipe = {.parameters = 7e9, .optimiser = Optimiser::adam, .shard = Shard::parameters}};
  profile.types["one"] = {.batch = 4, .step = Seconds(1), .batches = {{.batch = 4, .peak_mb = 20000}}};
  const auto need = memory_need(profile, profile.recipe, catalog, 4, 8);
  ASSERT_TRUE(need);
  EXPECT_EQ(need->impossible_peak, 20);
  EXPECT_NEAR(need->peak, 15.25, 1e-9);
  EXPECT_EQ(fits(*need, 80), Fits::unsure);
  EXPECT_EQ(fits(*need, 8), Fits::unsure);
  // On the GPU itself the measurement counts.
  EXPECT_FALSE(memory_need(profile, profile.recipe, catalog, 4, 1)->impossible_peak);
  // 120 GB can be, of which 113 do not grow with the samples, or 1.5 times that. No fewer samples take less than
  // states.
  profile.types["one"].batches[0].peak_mb = 120000;
  for (const double batch : {4.0, 1.0, 0.01})
    EXPECT_GE(memory_need(profile, profile.recipe, catalog, batch, 8)->low, 14);
}

// 16 bytes of 7 billion parameters are 112 GB. That a card will be given a sample says nothing of its room for it.
TEST(Memory, OnlyAMeasuredSpeedShowsThatATypeHasTrained) {
  const Catalog catalog = cards();
  Profile profile{.recipe = {.parameters = 7e9, .optimiser = Optimiser::adam}};
  profile.types["one"] = {.batch = 1};
  const InstanceType& one = *catalog.find("one");
  EXPECT_EQ(memory_fit(profile, catalog, one, 1)->fits, Fits::no);
  profile.types["one"].step = Seconds(1);
  EXPECT_EQ(memory_fit(profile, catalog, one, 1)->fits, Fits::yes);
}

// Transformer-XL large with LAMB, 24 GB with 11 samples on one card: 1.25 + 28 x 0.247 = 8.2 GB without a sample, and
// on another card it was 12.1. So one sample may or may not fit into 11 GB; it did not.
TEST(Memory, WhatWasTrainedSpeaksForGpusWithAsMuch) {
  Catalog catalog = cards();
  Profile profile;
  profile.recipe = {.parameters = 6.74e9, .optimiser = Optimiser::adam};
  profile.types["small"] = {.batch = 4, .compute = Seconds(1)};
  InstanceType four = *catalog.find("one");
  four.gpu_count = 4;
  EXPECT_TRUE(memory_fit(profile, catalog, *catalog.find("one"), 4)->seen);
  EXPECT_TRUE(memory_fit(profile, catalog, four, 16)->seen);
  EXPECT_FALSE(memory_fit(profile, catalog, *catalog.find("one"), 5)->seen);
  profile.types["one"] = std::exchange(profile.types["small"], {});
  EXPECT_FALSE(memory_fit(profile, catalog, *catalog.find("small"), 4)->seen);
  // Four may have shared what one alone holds.
  catalog.types.front().gpu_count = 4;
  InstanceType alone = cards().types.front();
  alone.name = "alone";
  EXPECT_FALSE(memory_fit(profile, catalog, alone, 1)->seen);
}

TEST(Memory, OfFewerSamplesMayBeMoreThanWhatStatesTake) {
  Profile profile{.recipe = {.parameters = 0.247e9, .optimiser = Optimiser::lamb}};
  profile.types["one"] = {.batch = 11, .batches = {{.batch = 11, .peak_mb = 24000}}};
  const auto need = memory_need(profile, profile.recipe, cards(), 1, 1);
  EXPECT_EQ(fits(*need, 11), Fits::unsure);
  EXPECT_EQ(fits(*need, 24), Fits::yes);
}

// 10 GB with 10 samples and 18 GB with 20: 0.8 GB a sample and 2 GB without any.
TEST(Memory, OfTwoMeasuredBatchesIsALine) {
  Profile profile{.recipe = {.parameters = 0.045e9, .optimiser = Optimiser::adam}};
  profile.types["one"] = {.batch = 10, .batches = {{.batch = 10, .peak_mb = 10000}, {.batch = 20, .peak_mb = 18000}}};
  const auto need = memory_need(profile, profile.recipe, cards(), 30, 1);
  EXPECT_NEAR(need->peak, 26.0, 1e-9);
  EXPECT_EQ(fits(*need, 24), Fits::unsure);
}

// MPT 1.3B in bf16, 14 sequences of 2048 on each of 8 GPUs that share the states (FSDP): it did run on 80 GB.
TEST(Memory, OfATransformerFollowsFromItsShape) {
  Profile profile;
  profile.recipe = {.precision = Precision::bf16,
                    .network = Network::transformer,
                    .parameters = 1.316e9,
                    .optimiser = Optimiser::adam,
                    .shard = Shard::parameters,
                    .sequence = 2048,
                    .layers = 24,
                    .hidden = 2048,
                    .vocabulary = 50368};
  const auto need = memory_need(profile, profile.recipe, cards(), 14, 8);
  ASSERT_TRUE(need);
  EXPECT_NEAR(need->high, 82.455, 1e-2);
  EXPECT_NEAR(need->low, 57.853, 1e-2);
  EXPECT_NE(fits(*need, 80), Fits::no);
  // Llama 2 7B with all of it on one GPU of 48 GB: 16 bytes of 6.74 billion parameters are 108 GB.
  Profile whole{.recipe = {.parameters = 6.74e9, .optimiser = Optimiser::adam}};
  const auto state = memory_need(whole, whole.recipe, cards(), 1, 1);
  EXPECT_NEAR(state->low, 1.25 + 107.84, 1e-2);
  EXPECT_EQ(fits(*state, 48), Fits::no);
}

TEST(Memory, NothingIsSaidOfWhatIsNotKnown) {
  EXPECT_FALSE(memory_need(Profile{}, Recipe{}, cards(), 8, 1));
  // What the states take is only the least: a small network may need more for its activations.
  Profile small{.recipe = {.parameters = 1e6}};
  EXPECT_EQ(fits(*memory_need(small, small.recipe, cards(), 1, 1), 24), Fits::unsure);
}

// 1 billion parameters with Adam: 16 GB, of which 8 GPUs save 14. 30 GB were measured with 8 samples, so 12.75 GB are
// theirs: with the states shared 16 GB of 24. But of 0.1 billion, 1.6 GB, next to nothing is saved, and 30 GB stay
// above 28.6.
TEST(Memory, SharedStatesHelpOnlyWhereStatesAreWhatIsLarge) {
  const Catalog catalog = cards();
  Profile profile{.recipe = {.parameters = 1e9, .optimiser = Optimiser::adam}};
  profile.types["small"].batches = {{.batch = 8, .peak_mb = 30000}};
  const InstanceType& small = *catalog.find("small");
  EXPECT_NE(what_would_fit(profile, catalog, small, 8).find("shared"), std::string::npos);
  profile.recipe.parameters = 1e8;
  EXPECT_EQ(what_would_fit(profile, catalog, small, 8), "gradient accumulation, 4 samples at a time");
}

// The 7B model on one card of 48 GB, Adam, 2,048 tokens: 106 GB of states, some 9 GB a sample. Neither fewer samples
// nor sharing does it alone for 48 samples.
TEST(Memory, WaysToFitAreJoinedWhereNoneDoesItAlone) {
  const Catalog catalog = cards();
  const Profile profile{.recipe = {.network = Network::transformer,
                                   .tuned = true,
                                   .parameters = 6.659e9,
                                   .optimiser = Optimiser::adam,
                                   .sequence = 2048,
                                   .layers = 32,
                                   .hidden = 4096,
                                   .vocabulary = 50432}};
  const std::string ways = what_would_fit(profile, catalog, *catalog.find("one"), 48);
  EXPECT_NE(ways.find("ZeRO 3) and "), std::string::npos) << ways;
  EXPECT_EQ(ways.find("accumulation"), std::string::npos) << ways;
}

TEST(Memory, MoreSamplesNeverTakeLess) {
  Profile profile{.recipe = {.precision = Precision::bf16,
                             .network = Network::transformer,
                             .parameters = 7e9,
                             .optimiser = Optimiser::adam,
                             .sequence = 2048}};
  for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
    profile.recipe.recompute = recompute;
    double before = 0;
    for (double batch = 1; batch <= 64; batch *= 2) {
      const auto need = memory_need(profile, profile.recipe, cards(), batch, 1);
      EXPECT_GT(need->low, before);
      EXPECT_LE(need->low, need->peak);
      EXPECT_LE(need->peak, need->high);
      before = need->low;
    }
  }
}

}  // namespace
}  // namespace mayfly
