#include "predict/gpu_ratio.h"

#include <gtest/gtest.h>

#include <cmath>

#include "cloud/catalog.h"

namespace mayfly {
namespace {

const Catalog& facts() {
  static const Catalog gpus = load_catalog(MAYFLY_SOURCE_DIR "/data/gpus.yaml").value();
  return gpus;
}
const Gpu& gpu(const char* model) {
  const Gpu* found = facts().find_gpu(model);
  EXPECT_NE(found, nullptr) << model;
  return *found;
}

GpuRatio ratio(const char* from, const char* to, Precision precision, Network network, bool tuned = false) {
  return gpu_ratio(gpu(from), gpu(to), {.precision = precision, .network = network, .tuned = tuned}).value();
}
double tenth(const GpuRatio& ratio) { return std::exp(1.2815515655446004 * ratio.relative_sd); }

// ResNet-50 in half precision, 1386 images/s on an A100. Its time there is 0.1474 + 0.4056 + 0.4470 = 1; an H100 has
// 989 for 312 TFLOPS and 3350 for 2039 GB/s, whose memory's part the larger cache shortens by (50 / 40)^-0.204: 0.1474
// / 3.170 + 0.4056 * 0.6087 * 0.9555 + 0.4470 = 0.7294; vector units 67 for 19.5: ^-0.125 = 0.857; 700 W for 400:
// ^-0.105 = 0.943. Measured beyond that: -0.7 % and -2.6 %. So 1.729 times as fast.
TEST(GpuRatio, FollowsFromPeaksMemoryAndPower) {
  const GpuRatio h100 = ratio("A100-80GB", "H100-80GB", Precision::fp16, Network::convolutions);
  EXPECT_NEAR(1386 * h100.speed, 2396.5, 3);
  // 0.12 + 0.08 ln(989 / 312) = 0.2123
  EXPECT_NEAR(std::log(tenth(h100)), 0.2123, 1e-4);
  EXPECT_NEAR(239 * ratio("A100-80GB", "H100-80GB", Precision::tf32, Network::transformer).speed, 436.77, 0.5);
  EXPECT_NEAR(52 * ratio("V100-32GB", "A100-80GB", Precision::fp16, Network::transformer).speed, 107.55, 0.15);
}

// An L40S is 0.72 times an A100 on ResNet-50 in 32 bits; its FP32 peak is 4.7 times as high.
TEST(GpuRatio, AnL40SIsSlowerThanAnA100) {
  EXPECT_LT(ratio("A100-80GB", "L40S-48GB", Precision::tf32, Network::convolutions).speed, 1.0);
  EXPECT_GT(ratio("A100-80GB", "L40S-48GB", Precision::tf32, Network::convolutions).speed, 0.6);
}

TEST(GpuRatio, IsTheInverseOfTheWayBackAndOneForItself) {
  for (const Gpu& a : facts().gpus) {
    EXPECT_EQ(gpu_ratio(a, a, {})->speed, 1);
    for (const Gpu& b : facts().gpus) {
      const auto there = gpu_ratio(a, b, {.precision = Precision::bf16});
      const auto back = gpu_ratio(b, a, {.precision = Precision::bf16});
      ASSERT_EQ(there.has_value(), back.has_value());
      if (!there) continue;
      EXPECT_NEAR(there->speed * back->speed, 1, 1e-9) << a.model << " " << b.model;
    }
  }
}

TEST(GpuRatio, MoreOfAnythingIsNeverSlower) {
  const Gpu a = gpu("A100-80GB");
  for (const Network network : {Network::convolutions, Network::transformer, Network::unknown}) {
    for (const bool tuned : {false, true}) {
      const Recipe recipe{.precision = Precision::bf16, .network = network, .tuned = tuned};
      double before = 0;
      for (double factor = 0.25; factor < 8; factor *= 1.3) {
        Gpu b = gpu("H100-80GB");
        b.memory_rate = BytesPerSecond{3350e9 * factor};
        const double memory = gpu_ratio(a, b, recipe)->speed;
        EXPECT_GT(memory, before);
        before = memory;
      }
      Gpu faster = gpu("H100-80GB");
      faster.tflops_fp16 = 2000;
      EXPECT_GT(gpu_ratio(a, faster, recipe)->speed, gpu_ratio(a, gpu("H100-80GB"), recipe)->speed);
    }
  }
}

// What was never measured has a wider band: an architecture nobody measured, another vendor, a network nobody named.
TEST(GpuRatio, WhatNobodyMeasuredHasAWiderBand) {
  const auto known = ratio("A100-80GB", "H100-80GB", Precision::bf16, Network::transformer);
  const auto blackwell = ratio("H100-80GB", "B200-180GB", Precision::bf16, Network::transformer);
  const auto amd = ratio("H100-80GB", "MI300X-192GB", Precision::bf16, Network::transformer);
  Gpu hopper = gpu("B200-180GB");
  hopper.architecture = "hopper";
  const Recipe recipe{.precision = Precision::bf16, .network = Network::transformer};
  EXPECT_GT(blackwell.relative_sd, gpu_ratio(gpu("H100-80GB"), hopper, recipe)->relative_sd);
  EXPECT_GT(amd.relative_sd, blackwell.relative_sd);
  EXPECT_NEAR(812 * blackwell.speed, 1128.2, 2);
  EXPECT_NEAR(812 * amd.speed, 762.8, 2);
  EXPECT_GT(ratio("A100-80GB", "H100-80GB", Precision::bf16, Network::unknown).relative_sd, known.relative_sd);
}

// A V100 has no TF32: in 32 bits its A100 is ten times as fast on paper, but only for layers that a framework lets be
// rounded. 0.12 + 0.08 ln(156 / 15.7) + 0.195 = 0.499; in half precision 0.12 + 0.08 ln(312 / 125) + 0.075 = 0.268.
TEST(GpuRatio, HasAWiderBandWhereOnlyOneOfTwoHasTf32) {
  const auto full = ratio("V100-32GB", "A100-80GB", Precision::fp32, Network::convolutions);
  EXPECT_NEAR(std::log(tenth(full)), 0.4987, 1e-4);
  const auto half = ratio("V100-32GB", "A100-80GB", Precision::fp16, Network::convolutions);
  EXPECT_NEAR(std::log(tenth(half)), 0.2682, 1e-4);
}

// Large language models in tuned code are bound by products of matrices: an H100 is 2.22 times an A100, not 1.6. Of its
// peak 0.803 is reached, and with 0.2 of the operations in attention 271 / (989 * 0.803) * (1 + 0.2 * (1 / 0.58 - 1)) =
// 0.3907: 0.74 * 0.3907 + 0.25 * 2039 / 3350 + 0.01 = 0.4513, for 0.9996 of the A100.
TEST(GpuRatio, OfTunedCodeFollowsWhatProductsOfMatricesReach) {
  const auto h100 = ratio("A100-80GB", "H100-80GB", Precision::bf16, Network::transformer, true);
  EXPECT_NEAR(2262.1 * h100.speed, 5011.2, 10);
  EXPECT_NEAR(std::log(tenth(h100)), 0.15, 1e-9);
  EXPECT_NEAR(1664 * ratio("H100-80GB", "GB200-186GB", Precision::fp8, Network::transformer, true).speed, 4020.7, 10);
}

// 65536 tokens of width 4096: 65536 / (65536 + 6 * 4096) = 0.727 of the operations are attention's, which an H100 is
// slower at. 0.74 * 0.3412 * (1 + 0.727 * (1 / 0.58 - 1)) + 0.1522 + 0.01 = 0.5477, so 1.825 times an A100. What is
// told of the length narrows the band.
TEST(GpuRatio, OfTunedCodeGainsLessOnLongSequences) {
  const auto h100 = [](std::optional<double> sequence) {
    const Recipe recipe{.precision = Precision::bf16,
                        .network = Network::transformer,
                        .tuned = true,
                        .sequence = sequence,
                        .hidden = 4096};
    return gpu_ratio(gpu("A100-80GB"), gpu("H100-80GB"), recipe).value();
  };
  EXPECT_NEAR(h100(65536).speed, 1.8253, 1e-3);
  EXPECT_GT(h100(2048).speed, 2.3);
  EXPECT_NEAR(std::log(tenth(h100(65536))), 0.09, 1e-9);
  EXPECT_GT(h100(std::nullopt).relative_sd, h100(2048).relative_sd);
}

TEST(GpuRatio, NeedsPeakAndMemoryRateOfBoth) {
  Gpu bare{.model = "bare", .tflops_fp32 = 10};
  EXPECT_FALSE(gpu_ratio(bare, gpu("T4-16GB"), {}));
  EXPECT_FALSE(gpu_ratio(gpu("T4-16GB"), bare, {}));
  EXPECT_FALSE(gpu_ratio(gpu("H100-80GB"), gpu("T4-16GB"), {.precision = Precision::fp8, .tuned = true}));
}

TEST(Networks, AreToldByTheirNames) {
  EXPECT_EQ(network_called("ResNet-110"), Network::convolutions);
  EXPECT_EQ(network_called("Llama 3.1 8B"), Network::transformer);
  EXPECT_EQ(network_called("Transformer-XL base"), Network::transformer);
  EXPECT_EQ(network_called("resnet50"), Network::convolutions);
  EXPECT_EQ(network_called("T5-large"), Network::transformer);
  EXPECT_EQ(network_called("GNMT"), Network::recurrent);
  EXPECT_EQ(network_called("DLRM"), Network::recommender);
  EXPECT_EQ(network_called("my job"), Network::unknown);
}

}  // namespace
}  // namespace mayfly
