#include "cloud/gpu_name.h"

#include <gtest/gtest.h>

namespace mayfly {
namespace {

Gpu gpu(std::string model, double gib, bool nvlink = false) {
  Gpu made{.model = std::move(model), .memory_gib = gib};
  if (nvlink) made.nvlink = BytesPerSecond{450e9};
  return made;
}

const std::vector<Gpu> kGpus = {
    gpu("P100-16GB", 16),       gpu("P100-SXM2-16GB", 16, true), gpu("V100-16GB", 16, true),
    gpu("V100-32GB", 32, true), gpu("V100-PCIE-16GB", 16),       gpu("V100-SXM3-32GB", 32, true),
    gpu("A40-48GB", 48, true),  gpu("A6000-48GB", 48),           gpu("A100-40GB", 40, true),
    gpu("A100-80GB", 80, true), gpu("A100-PCIE-80GB", 80),       gpu("H100-80GB", 80, true),
    gpu("H100-PCIE-80GB", 80),  gpu("H100-NVL-94GB", 94),        gpu("RTX6000-24GB", 24),
    gpu("RTX4090-24GB", 24),    gpu("RTX6000-Ada-48GB", 48),     gpu("RTXPRO6000-96GB", 96),
};

std::string found(std::string_view text, std::optional<double> gib = {}) {
  const Gpu* one = gpu_named(kGpus, gpu_name(text), gib);
  return one == nullptr ? "none" : one->model;
}

TEST(GpuName, IsTakenApart) {
  const auto name = gpu_name("NVIDIA A100-80G-PCIe-NVLink");
  EXPECT_EQ(name.family, "A100");
  EXPECT_EQ(name.form, "PCIE");
  EXPECT_EQ(name.gib, 80);
  EXPECT_EQ(gpu_name("H100_SXM5").form, "SXM5");
  EXPECT_EQ(gpu_name("NVIDIA-H100-80GB-HBM3").family, "H100");
  EXPECT_EQ(form_in("gpu_1x_h100_pcie"), "PCIE");
  EXPECT_EQ(form_in("crusoe_A100-80G-sxm4x8"), "SXM4");
  EXPECT_EQ(form_in("gpu_8x_a100"), "");
}

TEST(GpuName, SpellingsOfTheCloudsMeanOneModel) {
  EXPECT_EQ(found("RTXA6000"), "A6000-48GB");
  EXPECT_EQ(found("RTX-A6000"), "A6000-48GB");
  EXPECT_EQ(found("RTX6000Ada"), "RTX6000-Ada-48GB");
  EXPECT_EQ(found("RTX-6000-Ada"), "RTX6000-Ada-48GB");
  EXPECT_EQ(found("RTX6000"), "RTX6000-24GB");
  EXPECT_EQ(found("RTX PRO 6000 96GB"), "RTXPRO6000-96GB");
  EXPECT_EQ(found("RTXPRO6000S"), "RTXPRO6000-96GB");
  EXPECT_EQ(found("RTXPRO6000-MaxQ"), "none");  // half the power
  EXPECT_EQ(found("NVIDIA GeForce RTX 4090"), "RTX4090-24GB");
}

TEST(GpuName, TheFormIsThatOfTheNameOrTheSxmOne) {
  EXPECT_EQ(found("H100"), "H100-80GB");
  EXPECT_EQ(found("H100-SXM"), "H100-80GB");
  EXPECT_EQ(found("H100-80GB-SXM5"), "H100-80GB");
  EXPECT_EQ(found("H100_PCIE"), "H100-PCIE-80GB");
  EXPECT_EQ(found("H100-NVL"), "H100-NVL-94GB");
  EXPECT_EQ(found("P100"), "P100-16GB");
  EXPECT_EQ(found("P100-SXM2"), "P100-SXM2-16GB");
  EXPECT_EQ(found("V100-SXM2", 32), "V100-32GB");
  EXPECT_EQ(found("V100-SXM3"), "V100-SXM3-32GB");
  EXPECT_EQ(found("A40-PCIe"), "A40-48GB");
}

TEST(GpuName, SeveralSizesAreNone) {
  EXPECT_EQ(found("A100"), "none");
  EXPECT_EQ(found("A100", 79.6), "A100-80GB");
  EXPECT_EQ(found("A100-80GB"), "A100-80GB");
  EXPECT_EQ(found("A100-80GB", 40), "none");  // the name and the memory say different things
  EXPECT_EQ(found("V100"), "none");
  EXPECT_EQ(found("B100"), "none");
}

TEST(GpuName, AFormLeftOpenIsKnownToBeSo) {
  EXPECT_TRUE(form_is_open(kGpus, gpu_name("H100"), 80));
  EXPECT_TRUE(form_is_open(kGpus, gpu_name("A100"), 80));
  EXPECT_FALSE(form_is_open(kGpus, gpu_name("A100"), 40));
  EXPECT_FALSE(form_is_open(kGpus, gpu_name("H100-SXM"), 80));
  EXPECT_FALSE(form_is_open(kGpus, gpu_name("RTX4090"), {}));
}

}  // namespace
}  // namespace mayfly
