#include "cloud/skypilot_cloud.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "cloud/import.h"

// Rows as the clouds' files in SkyPilot's catalogue have them, cut short.

namespace mayfly {
namespace {

/// The GPUs of one source, "sheet".
Catalog known_gpus() {
  Catalog known{.name = "known"};
  known.sources = {{.id = "sheet", .title = "Data sheet", .date = "2020-01-01"}};
  const BytesPerSecond link{450e9};
  known.gpus = {{.model = "A6000-48GB", .memory_gib = 48, .tflops_fp32 = 38.7},
                {.model = "A100-80GB", .memory_gib = 80, .tflops_fp32 = 19.5, .nvlink = link},
                {.model = "A100-PCIE-80GB", .memory_gib = 80, .tflops_fp32 = 19.5},
                {.model = "H100-80GB", .memory_gib = 80, .tflops_fp32 = 67, .nvlink = link},
                {.model = "H100-PCIE-80GB", .memory_gib = 80, .tflops_fp32 = 51},
                {.model = "H100-NVL-94GB", .memory_gib = 94, .tflops_fp32 = 60},
                {.model = "H200-141GB", .memory_gib = 141, .tflops_fp32 = 67, .nvlink = link},
                {.model = "RTX4090-24GB", .memory_gib = 24, .tflops_fp32 = 82.6}};
  return known;
}

Result<Imported> imported(std::string_view cloud, std::string_view columns, const std::string& rows) {
  return import_skypilot(fmt::format("{}\n{}", columns, rows), "vms.csv", known_gpus(),
                         {.name = "x", .date = "2026-01-19", .cloud = std::string(cloud)});
}

constexpr std::string_view kUsual =
    "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,Region,GpuInfo,SpotPrice";

/// One row with the usual columns; `size` is what SizeInMiB says.
std::string row(std::string_view type, std::string_view gpu, int count, double size, std::string_view region = "r") {
  return fmt::format(
      "{},{},{},16,64,2.5,{},\"{{'Gpus': [{{'Name': '{}', 'Count': {}, 'MemoryInfo': {{'SizeInMiB': {}}}}}]}}\",\n",
      type, gpu, count, region, gpu, count, size);
}

bool noted(const Imported& done, std::string_view text) {
  return std::any_of(done.notes.begin(), done.notes.end(),
                     [&](const std::string& note) { return note.find(text) != std::string::npos; });
}

const InstanceType& only_type(const Result<Imported>& done) {
  static const InstanceType none{};
  EXPECT_TRUE(done) << (done ? "" : done.error().message);
  return done && done->catalog.types.size() == 1 ? done->catalog.types[0] : none;
}

TEST(SkypilotCloud, RunpodStatesGibAsMib) {
  const auto done = imported("runpod", kUsual,
                             "1x_A100-80GB_SECURE,A100-80GB,1.0,8.0,117.0,1.39,CA,\"{'Gpus': [{'Name': 'A100 PCIe', "
                             "'Count': 1, 'MemoryInfo': {'SizeInMiB': 80}}], 'TotalGpuMemoryInMiB': 80}\",1.39\n");
  const auto& type = only_type(done);
  ASSERT_TRUE(type.gpu);
  // 80 MiB would be 0.078 GiB; "A100 PCIe" is of 80 GiB.
  EXPECT_EQ(type.gpu->model, "A100-PCIE-80GB");
  EXPECT_EQ(type.gpu->memory_gib, 80);
  EXPECT_EQ(type.gpu->tflops_fp32, 19.5);
  EXPECT_TRUE(noted(*done, "states in GiB, not MiB, corrected (1): A100-80GB 80 GiB of 80"));
}

TEST(SkypilotCloud, ShadeformStatesGibAndNamesTheCloudBehindIt) {
  const auto done = imported("shadeform", kUsual, row("crusoe_A100-80G-sxm4x8", "A100-80GB", 8, 80, "culpeper-usa-1"));
  const auto& type = only_type(done);
  ASSERT_TRUE(type.gpu);
  EXPECT_EQ(type.gpu->model, "A100-80GB");
  EXPECT_EQ(type.gpu->memory_gib, 80);
  EXPECT_EQ(type.region, "crusoe, culpeper-usa-1");
  EXPECT_FALSE(noted(*done, "form is not stated"));
}

TEST(SkypilotCloud, VastStatesTheMemoryOfAllGpusAndNoSpotAsZero) {
  const auto done = imported("vast", kUsual,
                             "2x-H100_NVL-32-65536,H100,2,32,64.0,4.53,\", US, NA\",\"{'Gpus': [{'Name': 'H100', "
                             "'Count': 2, 'MemoryInfo': {'SizeInMiB': 191660}}]}\",0.00\n");
  const auto& type = only_type(done);
  ASSERT_TRUE(type.gpu);
  // 191660 MiB / 2 / 1024 = 93.6 GiB: the NVL card, which only the type names.
  EXPECT_EQ(type.gpu->model, "H100-NVL-94GB");
  EXPECT_NEAR(type.gpu->memory_gib, 93.58, 0.01);
  EXPECT_EQ(type.gpu_count, 2);
  EXPECT_FALSE(type.spot);
  EXPECT_EQ(type.region, "US, NA");
  EXPECT_TRUE(noted(*done, "of all together, divided (1)"));
  EXPECT_TRUE(noted(*done, "types with prices of 0, taken for no offer (1): 2x-H100_NVL-32-65536"));
  EXPECT_TRUE(noted(*done, "vast: a price is the median"));
}

TEST(SkypilotCloud, VastCardsThatNobodyKnowsKeepTheirFullName) {
  // 32752 MiB of two cards: 16 GiB each. The column says RTX4070, which has 12.
  const auto done = imported("vast", kUsual, row("2x-RTX_4070S_Ti-32-65536", "RTX4070", 2, 32752));
  const auto& type = only_type(done);
  ASSERT_TRUE(type.gpu);
  EXPECT_EQ(type.gpu->model, "RTX_4070S_Ti");
  EXPECT_NEAR(type.gpu->memory_gib, 15.99, 0.01);
  EXPECT_TRUE(noted(*done, "GPUs without TFLOPS, the known catalogue has none (1): RTX_4070S_Ti"));
}

TEST(SkypilotCloud, PrimeIntellectStatesTheMemoryOfAllGpus) {
  const auto done =
      imported("primeintellect", kUsual, row("nebius__8xH200_141GB__128__1600", "H200", 8, 1155072, "US"));
  const auto& type = only_type(done);
  ASSERT_TRUE(type.gpu);
  EXPECT_EQ(type.gpu->model, "H200-141GB");
  EXPECT_EQ(type.gpu->memory_gib, 141);  // 1155072 / 8 / 1024
  EXPECT_EQ(type.region, "nebius, US");
}

TEST(SkypilotCloud, MemoryOf0IsNotStated) {
  const auto nebius = imported("nebius", kUsual, row("gpu-h100-sxm_8gpu-128vcpu-1600gb", "H100", 8, 0));
  ASSERT_TRUE(only_type(nebius).gpu);
  EXPECT_EQ(only_type(nebius).gpu->model, "H100-80GB");
  const auto seeweb = imported("seeweb", kUsual, row("ECS1GPU12", "RTX PRO 6000 96GB", 1, 0));
  ASSERT_TRUE(only_type(seeweb).gpu);
  EXPECT_EQ(only_type(seeweb).gpu->memory_gib, 96);  // the name has it
  EXPECT_TRUE(noted(*seeweb, "seeweb: its file copies a European price list without a currency"));
}

TEST(SkypilotCloud, DigitalOceanWritesItsKeysSmall) {
  const auto done = imported("do", kUsual,
                             "gpu-h100x8-640gb,H100,8,160,1920.0,47.60,tor1,\"{'gpus': [{'name': 'h100', 'count': 8.0, "
                             "'memoryinfo': {'sizeinmib': 81559}}], 'totalgpumemoryinmib': 81559}\",\n");
  ASSERT_TRUE(only_type(done).gpu);
  EXPECT_EQ(only_type(done).gpu->model, "H100-80GB");
  EXPECT_TRUE(noted(*done, "GPUs whose form is not stated, taken for the SXM one (1): H100"));
}

TEST(SkypilotCloud, LambdaAndCudoNameTheFormInTheType) {
  const auto lambda = imported("lambda", kUsual, row("gpu_1x_h100_pcie", "H100", 1, 81920));
  EXPECT_EQ(only_type(lambda).gpu->model, "H100-PCIE-80GB");
  const auto cudo = imported("cudo", kUsual, row("intel-ice-lake-a100-pci_1x2v4gb", "A100", 1, 81920));
  EXPECT_EQ(only_type(cudo).gpu->model, "A100-PCIE-80GB");
  EXPECT_FALSE(noted(*cudo, "form is not stated"));
}

TEST(SkypilotCloud, VerdaWritesJsonAndSpheronUnderscores) {
  const auto verda = imported("verda", kUsual,
                              "1H200.141S.44V,H200,1.0,44.0,182.0,3.39,FIN-02,\"{\"\"Gpus\"\": [{\"\"Name\"\": "
                              "\"\"H200\"\", \"\"MemoryInfo\"\": {\"\"SizeInMiB\"\": 144384}}]}\",0.94\n");
  EXPECT_EQ(only_type(verda).gpu->model, "H200-141GB");
  const auto spheron = imported("spheron", kUsual, row("n3-A100x1__CANADA-1", "A100_80G_PCIE_BAREMETAL", 1, 81920));
  EXPECT_EQ(only_type(spheron).gpu->model, "A100-PCIE-80GB");
}

TEST(SkypilotCloud, LiumsTypesOfSeveralSizesAreTheCheapestMachine) {
  const auto done = imported("lium", kUsual,
                             "RTX4090_1x,RTX4090,1,12,63,0.35,RO,{'SizeInMiB': 24576},\n"
                             "RTX4090_1x,RTX4090,1,24,64,0.28,UA,{'SizeInMiB': 24576},\n");
  const auto& type = only_type(done);
  EXPECT_EQ(type.vcpus, 24);
  EXPECT_EQ(type.region, "UA");
  EXPECT_TRUE(noted(*done, "types whose rows differ in size, that of the cheapest is used (1): RTX4090_1x"));
}

TEST(SkypilotCloud, MithrilsPricesAreSaidToBeLeastBids) {
  const auto done = imported("mithril", kUsual, row("h100-80gb.sxm.8x", "H100", 8, 81920));
  EXPECT_TRUE(noted(*done, "mithril: its prices are the least the provider takes bids at"));
}

TEST(SkypilotCloud, AMemoryThatNoGpuHasInAnyUnitIsAnError) {
  const auto small = imported("lambda", kUsual, row("a", "Nova", 1, 0.5));
  ASSERT_FALSE(small);
  EXPECT_EQ(small.error().message,
            "vms.csv:2: column 'GpuInfo': SizeInMiB '0.5' of a Nova, want the MiB of one, 1024 to 1048576");
  EXPECT_FALSE(imported("lambda", kUsual, row("a", "Nova", 1, 5e8)));
  // 16 GiB in bytes
  const auto bytes = imported("lambda", kUsual, row("a", "Nova", 1, 17179869184));
  EXPECT_EQ(only_type(bytes).gpu->memory_gib, 16);
  EXPECT_TRUE(noted(*bytes, "states in bytes, corrected"));
}

TEST(SkypilotCloud, PartsOfVcpusAreNoMachine) {
  const auto done = imported("gcp", kUsual, "f1-micro,,,0.2,0.6,0.0076,us,,\nn1-standard-1,,,1,3.75,0.0475,us,,\n");
  EXPECT_EQ(only_type(done).name, "n1-standard-1");
  EXPECT_TRUE(noted(*done, "no whole number of vCPUs (1): f1-micro"));
  EXPECT_FALSE(imported("gcp", kUsual, "n1-standard-1,,,-1,3.75,0.0475,us,,\n"));
  // MiB in the column of GiB
  const auto mib = imported("gcp", kUsual, "m1-megamem-96,,,96,1468006,0.0475,us,,\n");
  ASSERT_FALSE(mib);
  EXPECT_EQ(mib.error().message, "vms.csv:2: column 'MemoryGiB': '1468006', want a number above 0 and up to 65536");
}

}  // namespace
}  // namespace mayfly
