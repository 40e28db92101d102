#include "predict/worker.h"

#include <gtest/gtest.h>

#include "support/problems.h"

namespace mayfly {
namespace {

using support::shipped_catalog;

// A job measured on a machine that is no type of the catalogue, with 2 cores and 100 GFLOPS: 1 s for 8 samples. A T4
// has 8.1 TFLOPS on paper, so 1 / 81 s; an m5.xlarge has 4 vCPUs, so half a second. The error of that is not known.
TEST(Workers, AreScaledFromTheMachineThatAJobWasProfiledOn) {
  const auto catalog = shipped_catalog("default");
  Profile profile{.name = "n",
                  .parameters = Bytes{1e6},
                  .exchange = Exchange::all_reduce,
                  .types = {{"local", {.batch = 8, .compute = Seconds(1), .gflops = 100, .cores = 2}}}};
  const InstanceType& t4 = *catalog.find("g4dn.xlarge");
  const auto gpu = make_worker(profile, t4, catalog);
  ASSERT_TRUE(gpu) << gpu.error().message;
  EXPECT_EQ(gpu->basis, Basis::scaled);
  EXPECT_EQ(gpu->batch, 8);
  EXPECT_NEAR(gpu->compute, 0.1 / *t4.gpu->tflops_fp32, 1e-12);
  EXPECT_NEAR(gpu->relative_sd, kUnlikeScalingSd, 1e-12);
  const auto cores = make_worker(profile, *catalog.find("m5.xlarge"), catalog);
  ASSERT_TRUE(cores) << cores.error().message;
  EXPECT_DOUBLE_EQ(cores->compute, 0.5);
  // Without its figures there is nothing to scale by.
  profile.types.begin()->second.gflops.reset();
  EXPECT_FALSE(make_worker(profile, t4, catalog));
}

// Speech is as long as it is: 8 GPUs add 3 * 0.03.
TEST(Workers, WaitLessCertainlyForSamplesThatDifferInSize) {
  const auto catalog = shipped_catalog("default");
  const InstanceType& type = *catalog.find("p3.16xlarge");
  Profile profile{.name = "n", .parameters = Bytes{1e6}, .exchange = Exchange::all_reduce};
  profile.recipe.network = Network::convolutions;
  const auto images = links_among(profile, type);
  profile.recipe.network = Network::audio;
  const auto speech = links_among(profile, type);
  ASSERT_TRUE(images && speech);
  EXPECT_NEAR(speech->relative_sd - images->relative_sd, 0.09, 1e-12);
}

// 32 samples in half a second on a V100 of 16 GiB. By the fit a V100 gets 0.01 * 16384 - 140 = 23.8, so 16 samples, and
// a T4 of 15 GiB would get 13.6, so 8; with an offset of -1000 none.
TEST(Workers, GetNoBatchFromAFitThatTurnsNegative) {
  auto catalog = shipped_catalog("default");
  Profile profile{.name = "n",
                  .parameters = Bytes{1e6},
                  .exchange = Exchange::all_reduce,
                  .types = {{"p3.2xlarge", {.batch = 32, .step = Seconds(0.5)}}},
                  .batch_fit = BatchFit{.samples_per_mb = 0.01, .offset = -140}};
  const InstanceType& t4 = *catalog.find("g4dn.xlarge");
  const auto worker = make_worker(profile, t4, catalog);
  ASSERT_TRUE(worker) << worker.error().message;
  EXPECT_EQ(worker->batch, 16);
  profile.batch_fit->offset = -1000;
  const auto none = make_worker(profile, t4, catalog);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message,
            "profile 'n': batch_fit gives -836.2 samples to a GPU of 16 GiB (g4dn.xlarge), want at least 1");
}

// A p4de with 8 A100: what its GPUs wait for each other is a share of what they compute, 3.1 % after three doublings,
// and a loader that sets the pace changes neither the wait nor what traffic hides behind.
TEST(Workers, ExchangeInsideAMachineFollowsFromWhatItsGpusCompute) {
  const auto catalog = shipped_catalog("default");
  Profile profile{.name = "n",
                  .parameters = Bytes{400e6},
                  .exchange = Exchange::all_reduce,
                  .types = {{"p4de.24xlarge", {.batch = 256, .compute = Seconds(0.4)}}}};
  const InstanceType& type = *catalog.find("p4de.24xlarge");
  const auto worker = make_worker(profile, type, catalog);
  ASSERT_TRUE(worker) << worker.error().message;
  const auto links = links_among(profile, type);
  for (const double compute : {0.4, 0.04, 0.004}) {
    EXPECT_NEAR(worker->interconnect.at(compute), time_among_gpus(compute, 8, 400e6, *links, false), 1e-15);
  }
  profile.loader.prep_samples_per_s_per_vcpu = 256 / 96.0;  // a second a step
  const auto waiting = make_worker(profile, type, catalog);
  EXPECT_NEAR(waiting->compute, 1, 1e-12);
  EXPECT_NEAR(waiting->interconnect.at(1), worker->interconnect.at(0.4), 1e-15);
}

}  // namespace
}  // namespace mayfly
