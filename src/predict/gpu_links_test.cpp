#include "predict/gpu_links.h"

#include <gtest/gtest.h>

namespace mayfly {
namespace {

InstanceType nvlinked(double gb_per_s, int gpus = 8) {
  return {.name = "n", .gpu_count = gpus, .nvlink = BytesPerSecond{gb_per_s * 1e9}};
}

// ResNet-50 in half precision, 51.2 MB of gradients, on 8 H100s that need 0.489 s each: 0.296 * 450 = 133.2 GB/s, so
// 2 * 7 / 8 * 51.2 / 133200 = 0.67 ms, of which 0.41 are not hidden: 0.28 ms; three doublings add 3.1 % and 1.5 ms.
// 0.489 * 1.031 + 0.00028 + 0.0015 = 0.50593 s.
TEST(GpuLinks, AStepOnSeveralGpusIsTheStepOfOneAndWhatIsNotHidden) {
  EXPECT_NEAR(0.489 + time_among_gpus(0.489, 8, 51.2e6, gpu_links(nvlinked(450)), false), 0.50593, 1e-4);
  EXPECT_NEAR(0.299 + time_among_gpus(0.299, 8, 668e6, gpu_links(nvlinked(300)), false), 0.31796, 1e-4);
  EXPECT_NEAR(1.3 + time_among_gpus(1.3, 8, 56.4e6, gpu_links(nvlinked(300)), true), 1.49459, 1e-4);
}

// BERT-large in 32 bits over PCIe 4 with peer-to-peer: 1336 MB at 0.82 of 25 GB/s.
TEST(GpuLinks, PcieIsAsGoodAsTheGpusReachEachOther) {
  InstanceType type{.name = "p", .gpu_count = 8, .pcie = BytesPerSecond{31.5e9}, .peer_to_peer = true};
  const double direct = time_among_gpus(0.432, 8, 1336e6, gpu_links(type), false);
  EXPECT_NEAR(0.432 + direct, 0.49365, 2e-4);
  type.peer_to_peer.reset();
  const double virtual_machine = time_among_gpus(0.432, 8, 1336e6, gpu_links(type), false);
  type.peer_to_peer = false;
  const double through_host = time_among_gpus(0.432, 8, 1336e6, gpu_links(type), false);
  EXPECT_LT(direct, virtual_machine);
  EXPECT_LT(virtual_machine, through_host);
  // GeForce cards: 218 MB at 5 GB/s, nothing of it hidden; 0.227 s become 0.312 s, give or take a third.
  EXPECT_NEAR(0.227 + time_among_gpus(0.227, 8, 218e6, gpu_links(type), false), 0.31184, 1e-4);
  EXPECT_NEAR(gpu_links(type).relative_sd, 0.38, 1e-9);
  // Nothing is known of how they are connected: wide.
  EXPECT_GT(gpu_links({.name = "u", .gpu_count = 4}).relative_sd, 0.25);
}

// 0.03 for each doubling: of 4 GPUs 0.06.
TEST(GpuLinks, SamplesOfDifferentSizeWidenTheBandWithTheGpus) {
  EXPECT_EQ(uneven_sd(1), 0);
  EXPECT_DOUBLE_EQ(uneven_sd(4), 0.06);
}

TEST(GpuLinks, OneGpuHasNothingToReduceAndTheWayBackIsExact) {
  EXPECT_EQ(time_among_gpus(0.2, 1, 1e9, gpu_links(nvlinked(300, 1)), false), 0);
  for (const double alone : {0.001, 0.01, 0.1, 1.0}) {
    for (const double bytes : {1e6, 1e8, 1e10}) {
      for (const int gpus : {1, 2, 4, 8, 16}) {
        for (const bool uneven : {false, true}) {
          const GpuLinks links = gpu_links(nvlinked(150, gpus));
          const double together = alone + time_among_gpus(alone, gpus, bytes, links, uneven);
          EXPECT_NEAR(time_alone(together, gpus, bytes, links, uneven), alone, 1e-9 * together);
        }
      }
    }
  }
}

}  // namespace
}  // namespace mayfly
