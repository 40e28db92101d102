#include "predict/advice.h"

#include <gtest/gtest.h>

namespace mayfly {
namespace {

InstanceType machine(std::string name, std::string gpu, double tflops, double vcpus, double memory, double price) {
  InstanceType type{.name = std::move(name), .cloud = "aws"};
  type.gpu = Gpu{.model = std::move(gpu), .tflops_fp32 = tflops};
  type.gpu_count = 1;
  type.vcpus = vcpus;
  type.memory_gib = memory;
  type.on_demand = Price{.rate = {price}};
  return type;
}

Catalog catalog() {
  Catalog found;
  found.types = {machine("fast", "V100", 16, 8, 61, 3.06), machine("small", "T4", 8, 4, 16, 0.526),
                 machine("wide", "T4", 8, 8, 32, 0.752), machine("widest", "T4", 8, 64, 256, 4.352)};
  return found;
}

TEST(Advice, NamesTheCheapestMachineThatEndsAPrepStall) {
  const Catalog known = catalog();
  const DataPath path{.device = 900, .prep = 125, .threads = 4};
  const auto found = advice(path, known, known.find("small"), Market::on_demand);
  EXPECT_EQ(found.now.bottleneck, Part::prep);
  ASSERT_TRUE(found.cheapest);
  EXPECT_EQ(found.cheapest->type, "wide");
  EXPECT_NEAR(found.cheapest->speedup, 900.0 / 500, 1e-9);
  EXPECT_NEAR(found.cheapest->extra.value, 0.226, 1e-9);
  EXPECT_EQ(found.cheapest->then, Part::compute);
  EXPECT_EQ(advice_text(found, "small"),
            "prep-bound: 4 more vCPUs per machine (wide instead of small, +$0.23/h): 1.8x as fast, 79 % of the money "
            "per sample; a faster device or faster storage would not help.");
}

TEST(Advice, SaysWhatIsNeededWhereNoMoneyIsKnown) {
  const DataPath path{.device = 900, .prep = 125, .threads = 4};
  const auto found = advice(path, {}, nullptr, Market::on_demand);
  EXPECT_FALSE(found.cheapest);
  EXPECT_EQ(advice_text(found, "here"),
            "prep-bound: 8 prep threads would keep up (1.8x as fast with twice as many); a faster device or faster "
            "storage would not help.");
}

TEST(Advice, ThreadsOnIdleCoresComeFirst) {
  const Catalog known = catalog();
  const DataPath path{.device = 900, .prep = 125, .threads = 1, .cores = 4};
  const auto found = advice(path, known, known.find("small"), Market::on_demand);
  EXPECT_EQ(found.free_threads, 4);
  EXPECT_NEAR(found.free_gain, 4, 1e-9);
  EXPECT_NEAR(found.cheapest->speedup, 1.8, 1e-9);  // against all cores at work
  EXPECT_EQ(advice_text(found, "small").substr(0, 117),
            "prep-bound: prep_threads: 4 instead of 1 make it 4x as fast for nothing; then 4 more vCPUs per machine "
            "(wide instead ");
}

TEST(Advice, DevicesThatWaitForEachOtherNeedALink) {
  const auto found = advice({.device = 1000, .exchange_s = 0.02}, {}, nullptr, Market::on_demand);
  EXPECT_EQ(advice_text(found, "here"),
            "interconnect-bound: devices wait for each other more than they compute: larger batches or a faster link "
            "between them; a faster device, more vCPUs or faster storage would not help.");
}

TEST(Advice, KnowsThatAFasterDeviceHelpsWhereDataKeepUp) {
  const Catalog known = catalog();
  const DataPath path{.device = 100, .prep = 125, .threads = 4};
  const auto found = advice(path, known, known.find("small"), Market::on_demand);
  EXPECT_EQ(found.now.bottleneck, Part::compute);
  ASSERT_TRUE(found.cheapest);
  EXPECT_EQ(found.cheapest->type, "fast");  // the only one that is faster at all
  EXPECT_NEAR(found.cheapest->speedup, 2, 1e-9);
  EXPECT_GT(found.cheapest->cost_ratio, 1);
}

TEST(Advice, CountsABiggerCacheAgainstAFetchStall) {
  const Catalog known = catalog();
  const DataPath path{.device = 900,
                      .sample = {1e6},
                      .storage = megabytes_per_second(100),
                      .memory = megabytes_per_second(10000),
                      .cached = 0.45};
  const auto found = advice(path, known, known.find("small"), Market::on_demand);
  EXPECT_EQ(found.now.bottleneck, Part::fetch);
  ASSERT_TRUE(found.cheapest);
  EXPECT_EQ(found.cheapest->type, "wide");  // twice the memory: 90 % of the data set
  EXPECT_NEAR(*found.cache_enough, (1 / 100.0 - 1 / 900.0) / (1 / 100.0 - 1 / 10000.0), 1e-9);
}

TEST(Advice, HasNothingToSayOfMachinesThatTheCatalogueDoesNotTellOf) {
  InstanceType known = machine("small", "T4", 8, 4, 16, 0.5);
  InstanceType other = machine("odd", "X", 8, 4, 16, 0.5);
  other.gpu->tflops_fp32.reset();
  EXPECT_FALSE(path_on({.device = 1}, known, other));
  other.gpu.reset();
  EXPECT_FALSE(path_on({.device = 1}, known, other));
}

}  // namespace
}  // namespace mayfly
