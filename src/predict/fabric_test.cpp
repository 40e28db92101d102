#include "predict/fabric.h"

#include <gtest/gtest.h>

#include <cmath>

#include "cloud/instance_type.h"
#include "predict/prediction.h"
#include "predict/worker.h"
#include "support/problems.h"

namespace mayfly {
namespace {

using support::shipped_catalog;

InstanceType connected(Fabric fabric, double gb_per_s) {
  return {.name = "n", .gpu_count = 8, .fabric = fabric, .fabric_rate = BytesPerSecond{gb_per_s * 1e9}};
}
double step(const InstanceType& type, double alone, int machines, const RingJob& job) {
  return alone + time_among_machines(alone, machines, ring_links(type, job));
}

// ResNet-50 in half precision from one machine to 8 of eight H100s, an eighth of the samples each: of 57.1 ms 2 are
// fixed, the rest shrinks to 55.1 * 0.125^0.93 = 7.97 ms; three doublings make 9.97 ms 10.27. 2 * 7 / 8 of 51.2 MB at
// 0.35 * 400 GB/s are 0.64 ms, of which 0.41 show: 10.53 ms.
TEST(Fabric, AStepOnSeveralMachinesIsTheStepOfOneAndWhatIsNotHidden) {
  const double alone = time_with_samples(0.0571, 0.125);
  EXPECT_NEAR(alone, 0.009967, 1e-6);
  EXPECT_NEAR(step(connected(Fabric::infiniband, 400), alone, 8, {.gradient_bytes = 51.2e6}), 0.010531, 1e-6);
  EXPECT_NEAR(step(connected(Fabric::efa, 400), time_with_samples(0.099, 0.75), 8, {.gradient_bytes = 672e6}), 0.081984,
              1e-6);
  // Images of unlike sizes: 5 % for each doubling.
  EXPECT_NEAR(step(connected(Fabric::infiniband, 200), time_with_samples(0.16, 1.0 / 3), 4,
                   {.gradient_bytes = 88.4e6, .uneven = true}),
              0.065688, 1e-6);
}

// One EDR adapter has 12.5 GB/s; published runs over it reach all of it.
TEST(Fabric, OneFastAdapterIsUsedWhole) {
  const RingLinks links = ring_links(connected(Fabric::infiniband, 12.5), {.gradient_bytes = 12.5e9});
  EXPECT_NEAR(links.once, 1, 1e-12);
  EXPECT_NEAR(ring_links(connected(Fabric::infiniband, 25), {.gradient_bytes = 13e9}).once, 1, 1e-12);
}

// 220 MB at 0.6 * 1.25 GB/s: 0.293 s, of which 0.21 * 0.303 s hide.
TEST(Fabric, EthernetIsSlowerAndLessCertain) {
  const InstanceType ethernet{.name = "e", .gpu_count = 1, .network = BytesPerSecond{1.25e9}};
  EXPECT_NEAR(step(ethernet, 0.3, 2, {.gradient_bytes = 220e6}), 0.532703, 1e-6);
  EXPECT_NEAR(ring_sd(ring_links(ethernet, {}), 2), 0.35, 1e-12);
  EXPECT_NEAR(ring_sd(ring_links(connected(Fabric::efa, 400), {}), 8), 0.045 + 3 * 0.008, 1e-12);
  EXPECT_NEAR(ring_sd(ring_links(connected(Fabric::roce, 400), {}), 8), 1.5 * (0.045 + 3 * 0.008), 1e-12);
  EXPECT_EQ(ring_sd(ring_links(ethernet, {}), 1), 0);
  // Measured, it is no guess.
  const RingLinks measured = ring_links(ethernet, {.gradient_bytes = 1e9, .measured_rate = 1e9});
  EXPECT_NEAR(measured.once, 1, 1e-12);
  EXPECT_NEAR(measured.relative_sd, 0.045, 1e-12);
}

TEST(Fabric, ANetworkThatNobodyNamesIsThatOfSuchMachinesOrNone) {
  const Gpu a100{.model = "A100-80GB", .nvlink = BytesPerSecond{300e9}};
  const RingLinks usual = ring_links({.name = "eight", .gpu = a100, .gpu_count = 8}, {.gradient_bytes = 70e9});
  EXPECT_NEAR(usual.once, 1, 1e-12);  // 0.35 * 200 GB/s
  EXPECT_NEAR(ring_sd(usual, 2), 1.6 * (0.045 + 0.008), 1e-12);
  const RingLinks one = ring_links({.name = "one", .gpu = a100, .gpu_count = 1}, {.gradient_bytes = 70e9});
  EXPECT_TRUE(std::isinf(one.once));
  EXPECT_EQ(ring_traffic(one, 1), 0);
  EXPECT_EQ(time_among_machines(1, 1, one), 0);
}

// 14 GB of gradients at 0.35 * 200 GB/s: on 8 machines 2 * 7 / 8 * 0.2 = 0.35 s, half as much again where parameters
// are sharded, too. All of it hides behind 1 s, but not behind 0.3.
TEST(Fabric, ShardedCodeHidesItsTrafficUpToTheStepItself) {
  const RingLinks links =
      ring_links(connected(Fabric::infiniband, 200), {.gradient_bytes = 14e9, .shard = Shard::parameters});
  EXPECT_NEAR(time_among_machines(1, 8, links), std::pow(1.01, 3) - 1, 1e-12);
  EXPECT_NEAR(time_among_machines(0.3, 8, links), 0.525 - 0.3, 1e-12);
}

// Two p4d.24xlarge by EFA, 50 GB/s: 100 MB at 0.35 of it are 5.7 ms, of which 0.41 show beside 1 % of waiting.
TEST(Fabric, IsWhatRingsOfCatalogueMachinesGoBy) {
  const auto catalog = shipped_catalog("default");
  Profile profile{.name = "p", .parameters = Bytes{100e6}, .exchange = Exchange::all_reduce};
  profile.scale_batch = true;
  profile.types["p4d.24xlarge"] = {.batch = 256, .compute = Seconds{0.2}};
  const InstanceType& type = *catalog.find("p4d.24xlarge");
  const auto worker = make_worker(profile, type, catalog);
  ASSERT_TRUE(worker && worker->ring);
  const Group two{&*worker, 2};
  const double alone = 0.2 + worker->interconnect.at(0.2);
  const double step = 1 / queue_speed(make_workload(profile), {&two, 1}, {}).updates_per_s;
  EXPECT_NEAR(step, 1.01 * alone + 0.41 * 0.1 / 17.5, 1e-9);
  const double band = relative_sd(Predictor::queue, ForSteps{1}, profile, {&two, 1}, {});
  const Group one{&*worker, 1};
  EXPECT_NEAR(std::hypot(relative_sd(Predictor::queue, ForSteps{1}, profile, {&one, 1}, {}), 0.053), band, 1e-12);
  // What was measured of the link wins: nothing hides, and the rate is the catalogue's.
  profile.link.latency = Seconds{0.001};
  profile.tensors = 10;
  const auto linked = make_worker(profile, type, catalog);
  ASSERT_TRUE(linked && !linked->ring);
  const Group both{&*linked, 2};
  EXPECT_NEAR(1 / queue_speed(make_workload(profile), {&both, 1}, {}).updates_per_s, alone + 0.01 + 0.1 / 50, 1e-9);
}

TEST(Fabric, OneMachineNeedsNoNetworkAndSeveralHaveNoSpeedWithoutOne) {
  const auto catalog = shipped_catalog("default");
  Profile profile{.name = "p", .parameters = Bytes{100e6}, .exchange = Exchange::all_reduce};
  profile.types["p2.xlarge"] = {.batch = 32, .compute = Seconds{1}};
  const auto worker = make_worker(profile, *catalog.find("p2.xlarge"), catalog);
  ASSERT_TRUE(worker);
  for (const Predictor predictor : {Predictor::queue, Predictor::additive}) {
    const Group one{&*worker, 1}, two{&*worker, 2};
    EXPECT_NEAR(cluster_speed(predictor, make_workload(profile), {&one, 1}, {}).samples_per_s, 32, 1e-9);
    EXPECT_EQ(cluster_speed(predictor, make_workload(profile), {&two, 1}, {}).updates_per_s, 0);
  }
}

}  // namespace
}  // namespace mayfly
