#include "cloud/tariffs.h"

#include <gtest/gtest.h>

namespace mayfly {
namespace {

Tariffs shipped() { return load_tariffs(MAYFLY_SOURCE_DIR "/data/tariffs.yaml").value(); }

TEST(Tariffs, AFigureIsThatOfTheEntryThatSaysMostOfTheRegion) {
  const Tariffs tariffs = shipped();
  EXPECT_EQ(tariffs.of({"aws", "us-west-2"}).internet->rate.value, 0.09);
  EXPECT_EQ(tariffs.of({"aws", "us-gov-east-1"}).internet->rate.value, 0.155);
  EXPECT_EQ(tariffs.of({"aws", "us-gov-east-1"}).machines->minimum, Seconds(60));
  const Tariff jakarta = tariffs.of({"gcp", "asia-southeast2"});
  EXPECT_EQ(jakarta.between_continents->rate.value, 0.15);
  EXPECT_EQ(jakarta.between_regions->rate.value, 0.05);
  EXPECT_EQ(jakarta.continent, "asia");
}

TEST(Tariffs, OfPlacesThatNobodyWasReadAboutNothingIsKnown) {
  const Tariffs tariffs = shipped();
  EXPECT_FALSE(tariffs.of({"aws", "mars-1"}).internet);
  EXPECT_FALSE(tariffs.of({"azure", "eastus"}).storage);
  EXPECT_EQ(tariffs.of({"verda", "fin-01"}), Tariff{});
  EXPECT_FALSE(tariffs.transfer({"verda", "fin-01"}, {"aws", "us-east-1"}));
}

TEST(Tariffs, ATransferIsPaidWhereItBegins) {
  const Tariffs tariffs = shipped();
  const auto rate = [&](const Site& from, const Site& to) { return tariffs.transfer(from, to)->rate.value; };
  EXPECT_EQ(rate({"aws", "us-east-1"}, {"aws", "us-east-1"}), 0);
  EXPECT_EQ(rate({"aws", "us-east-1"}, {"aws", "sa-east-1"}), 0.02);
  EXPECT_EQ(rate({"aws", "sa-east-1"}, {"aws", "us-east-1"}), 0.138);
  EXPECT_EQ(rate({"aws", "us-east-1"}, {"gcp", "us-central1"}), 0.09);
  EXPECT_EQ(rate({"gcp", "us-central1"}, {"gcp", "northamerica-northeast1"}), 0.02);
  EXPECT_EQ(rate({"gcp", "us-central1"}, {"gcp", "europe-west1"}), 0.08);
  EXPECT_EQ(rate({"local", ""}, {"gcp", "us-central1"}), 0);
  EXPECT_EQ(rate({"gcp", "us-central1"}, {"local", ""}), 0.12);
  // Which region of the same cloud decides; which of another does not.
  EXPECT_FALSE(tariffs.transfer({"aws", ""}, {"aws", "us-east-1"}));
  EXPECT_FALSE(tariffs.transfer({"", ""}, {"aws", "us-east-1"}));
}

// Half a minute costs a minute on AWS, a minute where whole minutes are billed; 61 s cost 61 there and two minutes
// here.
TEST(Tariffs, MachinesAreBilledForTheMinimumAndInSteps) {
  const Tariffs tariffs = shipped();
  const auto billed = [&](const char* cloud, const char* region, const char* type, double held) {
    return tariffs.of({cloud, region}).machines->of(type, Seconds(held)).count();
  };
  EXPECT_EQ(billed("aws", "us-east-1", "p3.2xlarge", 30), 60);
  EXPECT_EQ(billed("aws", "us-east-1", "p3.2xlarge", 61), 61);
  EXPECT_EQ(billed("aws", "us-east-1", "p3.2xlarge", 61.5), 62);
  EXPECT_EQ(billed("lambda", "", "gpu_1x_a10", 30), 60);
  EXPECT_EQ(billed("lambda", "", "gpu_1x_a10", 61), 120);
  EXPECT_EQ(billed("azure", "eastus", "Standard_NC6s_v3", 90), 300);
  EXPECT_EQ(billed("oci", "us-ashburn-1", "BM.GPU.H100.8", 600), 3600);
  EXPECT_EQ(billed("oci", "us-ashburn-1", "VM.GPU.A10.1", 600), 600);
  // 0.1 + 0.2 s three times over is 0.9 s and nothing more.
  EXPECT_EQ((BilledTime{.step = Seconds(0.1)}.of("m", Seconds(3 * (0.1 + 0.2)))).count(), 3 * (0.1 + 0.2));
}

TEST(Tariffs, SizesAreInTheGigabytesOfTheBill) {
  const Tariffs tariffs = shipped();
  EXPECT_EQ(gigabytes(tariffs.of({"aws", "us-east-1"}), {1073741824.0 * 3}), 3);
  EXPECT_EQ(gigabytes(tariffs.of({"azure", "eastus"}), {3e9}), 3);
}

TEST(Tariffs, TheExampleOfTheDocumentsIsOne) {
  const auto tariffs = load_tariffs(MAYFLY_SOURCE_DIR "/examples/formats/tariffs.yaml");
  ASSERT_TRUE(tariffs) << tariffs.error().message;
  EXPECT_EQ(tariffs->of({"aws", "us-east-1"}).between_continents->rate.value, 0.05);
}

TEST(Tariffs, SayWhatIsWrong) {
  const auto error = [](const std::string& cloud) {
    const auto read = parse_tariffs(
        "format: mayfly-tariffs/1\nsources: {s: {title: t, date: 2024-01-01}}\nclouds:\n  c: " + cloud + "\n", "t");
    return read ? "" : read.error().message;
  };
  EXPECT_EQ(error("{internet: {usd_per_gb: 1, source: z}}"),
            "t:4: clouds.c.internet.source: source 'z' is not under 'sources'");
  EXPECT_EQ(error("{machines: {minimum_s: 60, step_s: 0, source: s}}"),
            "t:4: clouds.c.machines.step_s: '0', want a number above 0");
  EXPECT_EQ(error("{internett: {usd_per_gb: 1, source: s}}"),
            "t:4: clouds.c.internett: unknown key (did you mean 'internet'?)");
  EXPECT_EQ(error("{storage: {usd_per_gb: 1, source: s}}"), "t:4: clouds.c.storage.usd_per_gb_month: missing");
  EXPECT_NE(error("{internet: {usd_per_gb: -1, source: s}}"), "");
  EXPECT_NE(error("{internet: {usd_per_gb: 1, free_gb: 5, source: s}}"), "") << "where is that allowance said?";
  EXPECT_NE(error("{machines: {minimum_s: 60, step_s: 1, types: {BM.: -1}, source: s}}"), "");
}

}  // namespace
}  // namespace mayfly
