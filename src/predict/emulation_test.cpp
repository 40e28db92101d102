#include "predict/emulation.h"

#include <gtest/gtest.h>

namespace mayfly {
namespace {

/// big: 2 GPUs of 8 TFLOPS; small: 1 of 4.
Catalog two_types() {
  Catalog catalog;
  catalog.name = "two";
  const Gpu fast{.model = "fast", .tflops_fp32 = 8};
  const Gpu slow{.model = "slow", .tflops_fp32 = 4};
  catalog.types = {{.name = "big",
                    .gpu = fast,
                    .gpu_count = 2,
                    .network = gigabits_per_second(10),
                    .on_demand = Price{.rate = {2}},
                    .spot = Price{.rate = {1}}},
                   {.name = "cpu", .network = gigabits_per_second(1), .on_demand = Price{.rate = {.5}}},
                   {.name = "small",
                    .gpu = slow,
                    .gpu_count = 1,
                    .network_burst = gigabits_per_second(5),
                    .on_demand = Price{.rate = {.5}}}};
  catalog.functions = {{.name = "aws-lambda",
                        .cloud = "aws",
                        .memory_mib_min = 128,
                        .memory_mib_max = 10240,
                        .memory_mib_step = 1,
                        .timeout = Seconds(900),
                        .usd_per_gib_s = 2e-5,
                        .mib_per_vcpu = 1769}};
  return catalog;
}

/// big trains 640 samples/s and small 320; a core of this computer 64.
Profile three_speeds() {
  Profile profile;
  profile.name = "three";
  profile.parameters = megabytes(1);
  profile.types["big"] = {.batch = 64, .compute = Seconds(.1), .basis = Basis::scaled};
  profile.types["small"] = {.batch = 32, .compute = Seconds(.1), .basis = Basis::scaled};
  profile.types["local"] = {.batch = 32, .compute = Seconds(.5)};
  return profile;
}

// Shares of 2 x 640 + 2 x 320 = 1920 samples/s in 0.8 x 2 = 1.6 cores: big 1.6 x 640 / 1920 = 0.533, small 0.267. A
// core trains 64, so big plays at 34.1 of its 640: 18.75 times slower; its 1250 MB/s become 66.7, small's 625 33.3.
TEST(Emulation, SharesTheCoresBySpeed) {
  const auto profile = three_speeds();
  const auto emulation = make_emulation(&profile, two_types(), {.machines = {{"big", 2}, {"small", 2}}, .cores = 2});
  ASSERT_TRUE(emulation.has_value()) << emulation.error().message;
  ASSERT_EQ(emulation->types.size(), 2u);
  EXPECT_NEAR(emulation->types[0].cpu_share, .53333, 1e-5);
  EXPECT_NEAR(emulation->types[1].cpu_share, .26667, 1e-5);
  EXPECT_NEAR(emulation->slowdown.value(), 18.75, 1e-9);
  EXPECT_NEAR(in_megabytes(emulation->types[0].network.value()), 66.667, 1e-3);
  EXPECT_NEAR(in_megabytes(emulation->types[1].network.value()), 33.333, 1e-3);
}

// Two servers take 0.4 of the 1.6: 1.2 x 640 / 1920 = 0.4, and 640 / (0.4 x 64) = 25.
TEST(Emulation, SetsAsideWhatServersNeed) {
  const auto profile = three_speeds();
  const auto catalog = two_types();
  const EmulationRequest request{.machines = {{"big", 2}, {"small", 2}}, .servers = 2, .cores = 2};
  const auto emulation = make_emulation(&profile, catalog, request);
  EXPECT_NEAR(emulation->types[0].cpu_share, .4, 1e-9);
  EXPECT_NEAR(emulation->slowdown.value(), 25, 1e-9);
  EXPECT_EQ(make_emulation(&profile, catalog, {.machines = {{"big", 1}}, .servers = 8, .cores = 2}).error().message,
            "8 servers leave nothing of 2 cores for workers");
}

// One big machine and two cores: 1.6 would be more than a core. 640 / 64 = 10.
TEST(Emulation, GivesNobodyMoreThanACore) {
  const auto profile = three_speeds();
  const auto emulation = make_emulation(&profile, two_types(), {.machines = {{"big", 1}}, .cores = 2});
  EXPECT_EQ(emulation->types[0].cpu_share, 1);
  EXPECT_NEAR(emulation->slowdown.value(), 10, 1e-9);
  // A type it was not made for: half as fast.
  const auto catalog = two_types();
  EXPECT_NEAR(emulated_type(*emulation, &profile, catalog, *catalog.find("small"))->cpu_share, .5, 1e-9);
}

// Without a profile 2 x 8 TFLOPS against 4: of 0.8 cores 0.8 x 16 / 20 = 0.64 and 0.16.
TEST(Emulation, GoesByPeakFlopsWithoutAProfile) {
  const auto emulation = make_emulation(nullptr, two_types(), {.machines = {{"big", 1}, {"small", 1}}, .cores = 1});
  EXPECT_NEAR(emulation->types[0].cpu_share, .64, 1e-9);
  EXPECT_NEAR(emulation->types[1].cpu_share, .16, 1e-9);
  EXPECT_FALSE(emulation->slowdown);
  EXPECT_FALSE(emulation->types[0].network);
  EXPECT_EQ(make_emulation(nullptr, two_types(), {.machines = {{"cpu", 1}}}).error().message,
            "nothing is known of the speed of cpu: it has no GPU in catalogue 'two', and there is no profile");
}

TEST(Emulation, KnowsNoSlowdownWithoutOneMeasuredType) {
  auto profile = three_speeds();
  profile.types["local"].basis = Basis::given;
  EXPECT_FALSE(make_emulation(&profile, two_types(), {.machines = {{"big", 1}}})->slowdown);
  profile.types["local"].basis = profile.types["small"].basis = Basis::measured;
  EXPECT_FALSE(make_emulation(&profile, two_types(), {.machines = {{"big", 1}}})->slowdown);
}

// Everything takes 5 times as long and costs a fifth an hour.
TEST(Stretching, SlowsMachinesAndLinksAndTheirPrices) {
  const auto profile = three_speeds();
  const auto catalog = two_types();
  const auto slow_profile = stretched(profile, 5);
  const auto slow_catalog = stretched(catalog, 5);
  const auto fast = make_worker(profile, catalog.types[0], catalog);
  const auto slow = make_worker(slow_profile, slow_catalog.types[0], slow_catalog);
  ASSERT_TRUE(fast && slow);
  EXPECT_DOUBLE_EQ(slow->compute, 5 * fast->compute);
  EXPECT_DOUBLE_EQ(slow->nic, fast->nic / 5);
  EXPECT_EQ(slow->batch, fast->batch);
  EXPECT_DOUBLE_EQ(slow_catalog.types[0].spot->rate.value, .2);
  EXPECT_DOUBLE_EQ(slow_catalog.functions[0].timeout.count(), 4500);
  EXPECT_EQ(stretched(profile, 1), profile);
  EXPECT_EQ(stretched(catalog, 1), catalog);
}

// 1728 MiB are 1.6875 GiB: 2e-5 x 1.6875 x 3600 = 0.1215 USD/h. Rate 0.01 x 1728 + 2.72 = 20 samples/s.
TEST(Functions, AreMachinesWithTheRateOfTheProfile) {
  auto profile = three_speeds();
  profile.serverless = ServerlessProfile{.platform = "aws-lambda",
                                         .rate_slope = .01,
                                         .rate_offset = 2.72,
                                         .local_batch = 10,
                                         .function_network = megabytes_per_second(80)};
  const auto type = function_type(&profile, two_types(), 1728);
  ASSERT_TRUE(type.has_value()) << type.error().message;
  EXPECT_EQ(type->name, "lambda-1728");
  EXPECT_NEAR(type->on_demand->rate.value, .1215, 1e-9);
  EXPECT_EQ(in_megabytes(type->network.value()), 80);
  EXPECT_NEAR(function_profile(profile, *type, 1728)->compute->count(), .5, 1e-9);
  EXPECT_EQ(function_type(&profile, two_types(), 64).error().message,
            "a function of 64 MiB: aws-lambda has 128 to 10240 in steps of 1");
}

// Half a vCPU of 1769 MiB: half of the 64 samples/s that a core trains, so 32 take a second.
TEST(Functions, WithoutARateArePartsOfACore) {
  auto profile = three_speeds();
  auto catalog = two_types();
  catalog.functions[0].mib_per_vcpu = 1770;
  const auto type = function_type(&profile, catalog, 885);
  EXPECT_NEAR(function_profile(profile, *type, 885)->compute->count(), 1, 1e-9);
  profile.types["local"].basis = Basis::given;
  EXPECT_FALSE(function_profile(profile, *type, 885));
}

}  // namespace
}  // namespace mayfly
