#include "predict/expected_stalls.h"

#include <gtest/gtest.h>

#include <cmath>

namespace mayfly {
namespace {

const Gpu kV100{.model = "V100-16GB", .memory_gib = 16, .tflops_fp32 = 15.7, .tflops_fp16 = 125};

InstanceType v100(const char* type_name, int gpus, double gbps, double usd) {
  InstanceType type{
      .name = type_name, .cloud = "aws", .region = "r", .gpu = kV100, .gpu_count = gpus, .vcpus = 8.0 * gpus};
  type.network = BytesPerSecond{gbps * 1e9 / 8};
  type.pcie = BytesPerSecond{15.75e9};
  if (gpus > 1) type.nvlink = BytesPerSecond{150e9};
  type.on_demand = Price{.rate = {usd}};
  return type;
}

/// By name, as a catalogue has them; on-demand prices of us-east-1.
Catalog p3() {
  Catalog catalog{.name = "p3"};
  catalog.types = {v100("p3.16xlarge", 8, 25, 24.48), v100("p3.2xlarge", 1, 1.25, 3.06),
                   v100("p3.8xlarge", 4, 10, 12.24)};
  return catalog;
}

/// BERT-large on SQuAD in half precision: 57 sequences/s on one V100 with 16 GB, 16 at a time (Lambda's benchmark,
/// 2024-07-24); 334 million parameters, 668 MB of gradients.
Profile bert() {
  Profile profile{.name = "bert", .model = "BERT-Large"};
  profile.sync = Sync::bsp;
  profile.exchange = Exchange::all_reduce;
  profile.samples = Samples{88000};
  profile.parameters = Bytes{1336e6};
  profile.recipe.parameters = 334e6;
  profile.recipe.precision = Precision::fp16;
  profile.types["p3.2xlarge"] = {.batch = 16, .step = Seconds{16 / 57.0}};
  return profile;
}

StallOutlook outlook(const Profile& profile, const Catalog& catalog, const char* type, int count) {
  auto made = stall_outlook(profile, catalog, {{catalog.find(type), count}});
  EXPECT_TRUE(made) << (made ? "" : made.error().message);
  return *made;
}

// A ring of 8 at 0.137 * 150 = 20.55 GB/s: 2 * 7/8 * 668 MB / 20.55 = 56.89 ms, 0.59 of it hidden: 33.56 ms; 3.1 % of
// 280.70 ms = 8.70 ms waiting, 3 * 0.5 ms latency. Together 33.52 ms of 314.23 ms: 10.67 %. The factor 314.23 / 280.70
// = 1.11943 errs by 0.095: times e^(1.28155 * 0.095) = 1.12947 it is 1.26436, a share of 20.91 %; over it, below 1:
// none.
TEST(ExpectedStalls, InterconnectIsTheShareThatASingleGpuWouldNotHave) {
  const auto one = outlook(bert(), p3(), "p3.16xlarge", 1);
  EXPECT_NEAR(one.alone, 0.280702, 1e-6);
  EXPECT_NEAR(one.step, 0.314227, 1e-6);
  EXPECT_NEAR(one.interconnect.parts->traffic, 0.056886, 1e-6);
  EXPECT_NEAR(one.interconnect.parts->hidden, 0.033562, 1e-6);
  EXPECT_NEAR(one.interconnect.parts->waiting, 0.008702, 1e-6);
  EXPECT_NEAR(one.interconnect.parts->latency, 0.0015, 1e-9);
  EXPECT_NEAR(one.interconnect.share.middle, 0.10669, 1e-5);
  EXPECT_NEAR(*one.interconnect.share.p90, 0.20909, 1e-5);
  EXPECT_EQ(*one.interconnect.share.p10, 0);
  EXPECT_EQ(one.interconnect.link, "nvlink");
  EXPECT_EQ(one.interconnect.basis, Basis::scaled);
  EXPECT_NEAR(one.samples_per_s.middle, 407.35, 0.01);
  EXPECT_FALSE(one.network);
  const auto single = outlook(bert(), p3(), "p3.2xlarge", 1);
  EXPECT_EQ(single.interconnect.share.middle, 0);
  EXPECT_EQ(single.interconnect.link, "none");
  EXPECT_EQ(single.basis, Basis::measured);
}

// 25 Gb/s of Ethernet, 0.6 of it for a ring: 668 MB / 1.875 GB/s = 356.27 ms, of which 0.21 * 280.70 = 58.95 ms hide; 1
// % of 314.23 = 3.14 ms waiting: 300.46 ms of 614.69, 48.88 %, and 1.9562 x one machine. e^(1.28155 * 0.35) = 1.56602.
TEST(ExpectedStalls, NetworkIsTheShareThatOneMachineWouldNotHave) {
  const auto two = outlook(bert(), p3(), "p3.16xlarge", 2);
  ASSERT_TRUE(two.network);
  EXPECT_NEAR(two.network->parts->traffic, 0.356267, 1e-6);
  EXPECT_NEAR(two.network->parts->hidden, 0.058947, 1e-6);
  EXPECT_NEAR(two.network->parts->waiting, 0.003142, 1e-6);
  EXPECT_NEAR(two.network->share.middle, 0.48880, 1e-5);
  EXPECT_NEAR(two.slowdown.middle, 1.95619, 1e-5);
  EXPECT_NEAR(*two.slowdown.p10, 1.95619 / 1.56602, 1e-4);
  EXPECT_NEAR(*two.slowdown.p90, 1.95619 * 1.56602, 1e-4);
  EXPECT_NEAR(two.network->share.p90.value(), 1 - 1 / (1.95619 * 1.56602), 1e-5);
  EXPECT_EQ(two.network->link, "ethernet");
  EXPECT_DOUBLE_EQ(two.batch, 256);  // each GPU keeps its 16
  // The three parts are the step.
  EXPECT_NEAR(two.alone + two.interconnect.seconds + two.network->seconds, two.step, 1e-12);
}

// Layers * latency + bytes / rate: 398 tensors of 0.1 ms, and 1336 MB at 3.125 GB/s, nothing of it hidden.
TEST(ExpectedStalls, AMeasuredLatencyCountsForEveryTensor) {
  Profile profile = bert();
  profile.link.latency = Seconds{1e-4};
  profile.tensors = 398;
  const auto two = outlook(profile, p3(), "p3.16xlarge", 2);
  EXPECT_NEAR(two.network->parts->latency, 0.0398, 1e-9);
  EXPECT_NEAR(two.network->seconds, 0.0398 + 1336.0 / 3125, 1e-9);
  EXPECT_EQ(two.network->link, "measured");
}

// Both measured, as published: 286 sequences/s on eight, of 8 * 57 = 456: 37.28 % is stall, where the model says 10.67.
TEST(ExpectedStalls, TwoMeasurementsTellWithoutAModel) {
  Profile profile = bert();
  profile.types["p3.16xlarge"] = {.batch = 128, .step = Seconds{128 / 286.0}};
  const auto one = outlook(profile, p3(), "p3.16xlarge", 1);
  EXPECT_NEAR(one.interconnect.share.middle, 1 - 286 / 456.0, 1e-9);
  EXPECT_EQ(one.interconnect.basis, Basis::measured);
  EXPECT_FALSE(one.interconnect.parts);
  EXPECT_NEAR(one.step, 128 / 286.0, 1e-9);
  // Other samples for each GPU: another step.
  profile.types["p3.2xlarge"].batch = 8;
  EXPECT_EQ(outlook(profile, p3(), "p3.16xlarge", 1).interconnect.basis, Basis::scaled);
}

TEST(ExpectedStalls, LinksThatAreNotKnownHaveAWiderBandAndANetworkThatIsNotHasNone) {
  Catalog catalog = p3();
  InstanceType& type = catalog.types[0];
  type.nvlink.reset();
  type.pcie.reset();
  type.network.reset();
  const auto known = outlook(bert(), p3(), "p3.16xlarge", 1).interconnect.share;
  const auto unknown = outlook(bert(), catalog, "p3.16xlarge", 1).interconnect;
  EXPECT_EQ(unknown.link, "unknown");
  EXPECT_GT(*unknown.share.p90 - *unknown.share.p10, 1.5 * (*known.p90 - *known.p10));
  EXPECT_FALSE(stall_outlook(bert(), catalog, {{&type, 2}}));
  const auto table = stall_table(bert(), catalog, Market::spot, 2);
  ASSERT_EQ(table.rows.size(), 3u);
  for (const auto& row : table.rows) EXPECT_EQ(row.several.has_value(), row.type != &type);
}

// 57 * 3600 / 3.06 = 67059 samples a dollar; 4 GPUs 208.14 samples/s and 61217; 8 GPUs 407.35 and 59904: 0.8933 of the
// first. 2 x p3.8xlarge: 2 * 4 GPUs of 26.79 ms more, 668 MB at 0.75 GB/s = 890.67 ms, 58.95 hidden, 3.07 waiting:
// 1142.29 ms against 314.23 is 3.6352 x, for as much money an hour.
TEST(ExpectedStalls, FindingsNameTheMachinesThatDoNotPay) {
  Catalog catalog = p3();
  const auto table = stall_table(bert(), catalog, Market::spot, 2);
  ASSERT_EQ(table.rows.size(), 3u);
  EXPECT_EQ(table.rows[0].type->name, "p3.2xlarge");
  EXPECT_TRUE(table.rows[0].on_demand);
  EXPECT_NEAR(*table.rows[0].samples_per_usd(), 67059, 1);
  const auto larger = larger_for_less(table);
  ASSERT_EQ(larger.size(), 2u);
  EXPECT_EQ(larger[0].row->type->name, "p3.16xlarge");
  EXPECT_EQ(larger[0].than->type->name, "p3.2xlarge");
  EXPECT_NEAR(larger[0].ratio, 0.8933, 1e-4);
  const auto apart = spread_out(bert(), catalog, table);
  ASSERT_EQ(apart.size(), 3u);  // 8 and 4 of the one GPU, 2 of the four
  EXPECT_GT(apart[0].slowdown.middle, apart[1].slowdown.middle);
  EXPECT_EQ(apart[2].type->name, "p3.8xlarge");
  EXPECT_EQ(apart[2].machines, 2);
  EXPECT_NEAR(apart[2].slowdown.middle, 3.63524, 1e-4);
  EXPECT_NEAR(*apart[2].cost, 3.63524, 1e-4);
  EXPECT_TRUE(dearer_and_slower(table).empty());
  // Dearer than the eight, the four are no match for them.
  catalog.types[2].on_demand->rate = {25};
  const auto other = stall_table(bert(), catalog, Market::spot, 2);
  const auto slower = dearer_and_slower(other);
  ASSERT_EQ(slower.size(), 1u);
  EXPECT_EQ(slower[0].row->type->name, "p3.8xlarge");
  EXPECT_EQ(slower[0].than->type->name, "p3.16xlarge");
  EXPECT_TRUE(slower[0].certain);
}

// A spot price of 4 USD for the machine of 8 GPUs and none for the others says nothing of what they would cost there.
TEST(ExpectedStalls, PricesOfTwoMarketsAreNotCompared) {
  Catalog catalog = p3();
  catalog.types[0].spot = Price{.rate = {4}};
  const auto table = stall_table(bert(), catalog, Market::spot, 2);
  EXPECT_TRUE(dearer_and_slower(table).empty());
  for (const LargerForLess& found : larger_for_less(table)) EXPECT_EQ(found.row->on_demand, found.than->on_demand);
  for (const SpreadOut& apart : spread_out(bert(), catalog, table)) {
    EXPECT_EQ(apart.cost.has_value(), apart.one->type->name == "p3.8xlarge");
    EXPECT_GT(apart.slowdown.middle, 1);
  }
}

}  // namespace
}  // namespace mayfly
