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

}  // namespace
}  // namespace mayfly
