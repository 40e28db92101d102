#include "cloud/import.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

namespace mayfly {
namespace {

const ImportOptions kAws{.name = "mine", .date = "2024-05-01", .cloud = "aws"};
const ImportOptions kGcp{.name = "mine", .date = "2024-05-01", .cloud = "gcp"};
const ImportOptions kAzure{.name = "mine", .date = "2024-05-01", .cloud = "azure"};

constexpr std::string_view kHeader =
    "InstanceType,vCPUs,MemoryGiB,AcceleratorName,AcceleratorCount,GPUInfo,Region,AvailabilityZone,Price,SpotPrice\n";

/// Sources 0 "sheet" and 1 "probe"; two sizes of V100, one L4; p3.2xlarge with a network rate that was probed.
Catalog known_catalog() {
  Catalog known{.name = "known"};
  known.sources = {{.id = "sheet", .title = "Data sheet", .date = "2020-01-01"},
                   {.id = "probe", .title = "Own measurement", .date = "2021-01-01"}};
  known.gpus = {{.model = "L4-24GB", .memory_gib = 24, .tflops_fp32 = 30.3, .source = 0},
                {.model = "V100-16GB", .memory_gib = 16, .tflops_fp32 = 15.7, .source = 0},
                {.model = "V100-32GB", .memory_gib = 32, .tflops_fp32 = 15.7, .source = 0}};
  InstanceType p3{.name = "p3.2xlarge", .cloud = "aws", .region = "us-east-1", .gpu = known.gpus[1], .gpu_count = 1};
  p3.vcpus = 8;
  p3.memory_gib = 61;
  p3.network = gigabits_per_second(2);
  p3.pcie = BytesPerSecond{12e9};
  p3.on_demand = Price{.rate = {3.06}, .source = 0};
  p3.spot = Price{.rate = {1.0}, .source = 0};
  p3.quota = 7;
  p3.zones = {{.zone = "us-east-1a", .on_demand = p3.on_demand, .spot = p3.spot, .quota = 3},
              {.zone = "us-east-1f", .on_demand = {}, .spot = p3.spot, .quota = {}}};
  p3.figure_sources = {{"network_gbps", 1}};
  known.types = {p3};
  return known;
}

/// A V100 of 16384 MiB as SkyPilot's AWS files write it.
std::string v100_row(std::string_view type, std::string_view place_and_prices) {
  return fmt::format(
      "{},8.0,61.0,V100,1.0,\"{{'Gpus': [{{'Name': 'V100', 'Manufacturer': 'NVIDIA', 'Count': 1.0, 'MemoryInfo': "
      "{{'SizeInMiB': 16384}}}}], 'TotalGpuMemoryInMiB': 16384}}\",{}\n",
      type, place_and_prices);
}

Result<Imported> import_rows(const std::string& rows, const ImportOptions& options = kAws,
                             const Catalog& known = known_catalog()) {
  return import_skypilot(std::string(kHeader) + rows, "vms.csv", known, options);
}

std::string error_of(const Result<Imported>& result) { return result ? "no error" : result.error().message; }

bool has_note(const Imported& imported, std::string_view text) {
  return std::any_of(imported.notes.begin(), imported.notes.end(),
                     [&](const std::string& note) { return note.find(text) != std::string::npos; });
}

TEST(ImportSkypilot, ReadsTheMemoryOutOfAQuotedPythonDictionary) {
  const auto imported = import_rows(v100_row("p3.8xlarge", "us-east-1,use1-az6,12.24,"));
  ASSERT_TRUE(imported) << error_of(imported);
  const auto& type = imported->catalog.types.at(0);
  // 16384 MiB / 1024 = 16 GiB, which is the known V100-16GB and not the V100-32GB: its 15.7 TFLOPS come along.
  EXPECT_EQ(type.gpu->model, "V100-16GB");
  EXPECT_DOUBLE_EQ(type.gpu->memory_gib, 16);
  EXPECT_EQ(type.gpu->tflops_fp32, 15.7);
  EXPECT_EQ(type.gpu_count, 1);
  EXPECT_DOUBLE_EQ(type.vcpus, 8);
  EXPECT_DOUBLE_EQ(type.memory_gib, 61);
  EXPECT_EQ(type.zones.at(0).zone, "use1-az6");
  EXPECT_FALSE(type.spot);
  EXPECT_FALSE(type.network);
  EXPECT_TRUE(has_note(*imported, "types without a network rate, the known catalogue has none (1): p3.8xlarge"));
}

TEST(ImportSkypilot, ReadsJsonWithDoubledQuotesAndWindowsLineEnds) {
  const auto imported = import_skypilot(
      "\xEF\xBB\xBFPrice,InstanceType,gpuinfo,AcceleratorName,AcceleratorCount,MemoryGiB,vCPUs,Arch\r\n"
      "0.5,x.large,\"{\"\"Gpus\"\": [{\"\"MemoryInfo\"\": {\"\"SizeInMiB\"\": 10240}}]}\",Nova,2,8,4.0,x86_64\r\n\r\n",
      "vms.csv", {}, kAws);
  ASSERT_TRUE(imported) << error_of(imported);
  const auto& type = imported->catalog.types.at(0);
  EXPECT_EQ(type.gpu->model, "Nova");
  EXPECT_DOUBLE_EQ(type.gpu->memory_gib, 10);  // 10240 / 1024
  EXPECT_FALSE(type.gpu->tflops_fp32);
  EXPECT_EQ(type.gpu_count, 2);
  EXPECT_TRUE(type.zones.empty());
  EXPECT_TRUE(has_note(*imported, "GPUs without TFLOPS, the known catalogue has none (1): Nova"));
}

TEST(ImportSkypilot, CheapestOfAllRowsIsTheTypesPriceAndOfOneZoneTheZones) {
  const auto imported = import_rows(
      "m5.large,2,8,,,,eu-west-1,euw1-az1,0.107,0.050\n"
      "m5.large,2,8,,,,us-east-1,use1-az1,0.096,0.060\n"
      "m5.large,2,8,,,,us-east-1,use1-az1,0.098,0.040\n"
      "m5.large,2,8,,,,us-east-1,use1-az2,,\n"
      "m5.large,2,8,,,,ap-south-1,,0.200,\n");
  ASSERT_TRUE(imported) << error_of(imported);
  const auto& type = imported->catalog.types.at(0);
  // On demand: min(0.107, 0.096, 0.098, 0.2); spot: min(0.05, 0.06, 0.04). The row without prices is no offer.
  EXPECT_EQ(type.on_demand->rate, UsdPerHour{0.096});
  EXPECT_EQ(type.spot->rate, UsdPerHour{0.040});
  EXPECT_EQ(type.region, "us-east-1");
  ASSERT_EQ(type.zones.size(), 2U);
  EXPECT_EQ(type.zones[0].zone, "euw1-az1");
  EXPECT_EQ(type.zones[0].spot->rate, UsdPerHour{0.050});
  EXPECT_EQ(type.zones[1].on_demand->rate, UsdPerHour{0.096});
  EXPECT_EQ(type.zones[1].spot->rate, UsdPerHour{0.040});
}

TEST(ImportSkypilot, FiguresOfTheKnownCatalogueKeepTheirSources) {
  const auto imported = import_rows(v100_row("p3.2xlarge", "us-west-2,us-west-2b,3.06,0.9") +
                                    v100_row("p3.2xlarge", "us-east-1,us-east-1a,3.06,1.1"));
  ASSERT_TRUE(imported) << error_of(imported);
  const auto& [catalog, notes] = *imported;
  const auto& type = catalog.types.at(0);
  EXPECT_EQ(type.network, gigabits_per_second(2));
  EXPECT_EQ(type.pcie, BytesPerSecond{12e9});
  EXPECT_EQ(type.quota, 7);
  EXPECT_EQ(type.zones.at(0).quota, 3);  // us-east-1a
  ASSERT_EQ(type.figure_sources.size(), 2U);
  EXPECT_EQ(catalog.sources.at(type.figure_sources[0].second).id, "probe");
  EXPECT_EQ(catalog.sources.at(type.figure_sources[1].second).id, "sheet");
  EXPECT_EQ(catalog.sources.at(type.gpu->source).id, "sheet");
  EXPECT_EQ(catalog.sources.at(type.spot->source).id, "skypilot-aws");
  EXPECT_EQ(catalog.sources.at(0).day, 19844);  // 54 years * 365 + 13 leap days + 31 + 29 + 31 + 30 = 19844
  EXPECT_EQ(catalog.sources.size(), 3U);
  EXPECT_TRUE(notes.empty());
}

TEST(ImportSkypilot, WhatItWritesTheCatalogueReaderReads) {
  const auto imported = import_rows(v100_row("p3.2xlarge", "us-west-2,us-west-2b,3.06,0.9") +
                                    "m5.large,2,8,,,,us-east-1,use1-az1,0.096,\n");
  ASSERT_TRUE(imported) << error_of(imported);
  const auto again = parse_catalog(catalog_yaml(imported->catalog), "again.yaml");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->types, imported->catalog.types);
}

TEST(ImportSkypilot, UsableMemoryBelowTheDataSheetsIsStillTheSameGpu) {
  const auto imported = import_rows("g6.xlarge,4,16,L4,1.0,{'SizeInMiB': 22888},us-east-1,use1-az1,0.8048,0.4\n");
  ASSERT_TRUE(imported) << error_of(imported);
  // 22888 / 1024 = 22.35 GiB, 7 % below 24.
  EXPECT_EQ(imported->catalog.types.at(0).gpu->model, "L4-24GB");
  EXPECT_DOUBLE_EQ(imported->catalog.types.at(0).gpu->memory_gib, 22888.0 / 1024);
  EXPECT_TRUE(has_note(*imported, "L4-24GB 22.35 GiB not 24"));
}

TEST(ImportSkypilot, AzureRowsTakeTheGpusMemoryFromTheKnownCatalogueOrAreSkipped) {
  // The known catalogue has one size of L4, two of V100 and no MI25, so that only the first is certain.
  const auto imported = import_rows(
      "Standard_X1,12,110,L4,1,L4,eastus,,0.9,0.2\n"
      "Standard_X2,12,110,V100,1,V100,eastus,,0.9,0.2\n"
      "Standard_X3,12,110,Radeon MI25,1,Radeon MI25,eastus,,0.9,0.2\n",
      kAzure);
  ASSERT_TRUE(imported) << error_of(imported);
  ASSERT_EQ(imported->catalog.type_names(), std::vector<std::string>{"Standard_X1"});
  EXPECT_DOUBLE_EQ(imported->catalog.types[0].gpu->memory_gib, 24);
  EXPECT_TRUE(has_note(*imported, "neither here nor in the known catalogue (2): Radeon MI25, V100"));
}

TEST(ImportSkypilot, SkipsPartsOfGpusAndAcceleratorsThatAreNone) {
  const auto imported = import_rows(
      "g6f.2xlarge,8,32,L4,0.25,{'SizeInMiB': 5722},us-east-1,use1-az1,0.475,0.17\n"
      "g6f.huge,8,32,L4,2.5,{'SizeInMiB': 22888},us-east-1,use1-az1,0.475,0.17\n"
      "trn1.2xlarge,8,32,Trainium,1,,us-east-1,use1-az1,1.34,0.4\n"
      "trn1.32xlarge,128,512,Trainium,16,,us-east-1,use1-az1,21.5,\n"
      "m5.large,2,8,,,,us-east-1,use1-az1,0.096,\n");
  ASSERT_TRUE(imported) << error_of(imported);
  EXPECT_EQ(imported->catalog.type_names(), std::vector<std::string>{"m5.large"});
  EXPECT_TRUE(has_note(*imported, "types skipped, they have no whole number of GPUs (2): L4 (2)"));
  EXPECT_TRUE(has_note(*imported, "types skipped, their accelerator is not a GPU (2): Trainium (2)"));
}

TEST(ImportSkypilot, GcpMachinesPricedWithoutTheirGpusAreNotTakenForCheapCpuMachines) {
  const auto imported = import_rows(
      "a2-highgpu-1g,12.0,85.0,,,,us-central1,us-central1-a,0.73948,0.29576\n"
      "n1-standard-8,8.0,30.0,,,,us-central1,us-central1-a,0.38,0.08\n"
      ",,,A100,1,A100,us-central1,us-central1-a,2.93391,1.1472\n"
      ",,,tpu-v6e-1,1,tpu-v6e-1,us-central1,us-central1-b,2.7,0.64833\n"
      ",,,A100,1,A100,us-central1,us-central1-b,2.93391,1.1472\n",
      kGcp);
  ASSERT_TRUE(imported) << error_of(imported);
  EXPECT_EQ(imported->catalog.type_names(), std::vector<std::string>{"n1-standard-8"});
  EXPECT_TRUE(
      has_note(*imported, "accelerator-only rows, priced apart from the VM, not imported (3): A100 (2), tpu-v6e-1"));
  EXPECT_TRUE(has_note(*imported, "do not name, nor surely price, their GPUs (1): a2-highgpu-1g"));
}

TEST(ImportSkypilot, ErrorsNameFileLineColumnAndValue) {
  const std::string good = "m5.large,2,8,,,,us-east-1,use1-az1,0.096,\n";
  EXPECT_EQ(error_of(import_rows(good + "\nm5.large,2,8,,,,us-east-1,use1-az1,-1,\n")),
            "vms.csv:4: column 'Price': '-1', want a number from 0 to 10^18");
  EXPECT_EQ(error_of(import_rows("m5.large,0,8,,,,us-east-1,use1-az1,1,\n")),
            "vms.csv:2: column 'vCPUs': '0', want a number above 0 and up to 4096");
  EXPECT_EQ(error_of(import_rows("m5.large,2,8,,,,us-east-1,use1-az1,1,nan\n")),
            "vms.csv:2: column 'SpotPrice': 'nan', want a number from 0 to 10^18");
  EXPECT_EQ(error_of(import_rows("x,2,8,L4,1,{'SizeInMiB': lots},r,z,1,\n")),
            "vms.csv:2: column 'GpuInfo': 'lots', want a number from 0 to 10^18");
  EXPECT_EQ(error_of(import_rows("m5.large,2,8\n")), "vms.csv:2: 3 columns, want 10 as in the header");
  EXPECT_EQ(error_of(import_rows("m5.large,2,8,,,\"{,,,,\n")), "vms.csv:2: a quote is not closed");
  EXPECT_EQ(error_of(import_rows(",2,8,,,,us-east-1,use1-az1,1,\n")),
            "vms.csv:2: column 'InstanceType': '', want a name");
  EXPECT_EQ(error_of(import_rows("\"a\rb\",2,8,,,,us-east-1,use1-az1,1,\n")),
            "vms.csv:2: column 'InstanceType': 'a\\x0db', want a name of at most 200 bytes without control characters");
}

TEST(ImportSkypilot, FilesWithoutTheColumnsOrRowsAreErrors) {
  EXPECT_EQ(error_of(import_skypilot("", "vms.csv", {}, kAws)),
            "vms.csv: the file is empty, want SkyPilot's catalogue CSV");
  EXPECT_EQ(error_of(import_skypilot("Tag,Region\na,b\n", "images.csv", {}, kAws)),
            "images.csv: no column 'InstanceType'; columns seen: Tag, Region");
  EXPECT_EQ(error_of(import_rows(std::string("m5\0,1", 5))), "vms.csv: binary file, want SkyPilot's catalogue CSV");
  EXPECT_EQ(error_of(import_rows("")), "vms.csv: no row became a machine");
  EXPECT_EQ(error_of(import_rows("m5.large,2,8,,,,us-east-1,use1-az1,,\n")),
            "vms.csv: no row became a machine: types skipped, no row has a price (1): m5.large");
  EXPECT_TRUE(error_of(import_rows("", {.name = "x", .date = "2024-05-01", .cloud = "lamda"}))
                  .starts_with("cloud 'lamda': want one of aws, azure, gcp, "));
  EXPECT_EQ(error_of(import_rows("", {.name = "x", .date = "May", .cloud = "aws"})), "date 'May': want YYYY-MM-DD");
}

TEST(ImportSkypilot, ManyRowsTakeTimeInProportion) {
  // 200 types in 500 zones. A lookup linear in the types or zones would take minutes; this takes well under a second.
  std::string rows;
  for (int i = 0; i < 100'000; ++i) {
    rows += fmt::format("t{}.large,2,8,,,,r,z{},{},0.01\n", i % 200, i / 200, 0.1 + i);
  }
  const auto start = std::chrono::steady_clock::now();
  const auto imported = import_rows(rows);
  ASSERT_TRUE(imported) << error_of(imported);
  EXPECT_EQ(imported->catalog.types.size(), 200U);
  EXPECT_EQ(imported->catalog.types[0].zones.size(), 500U);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

std::string record(std::string_view time, std::string_view zone, std::string_view price,
                   std::string_view type = "p3.2xlarge", std::string_view product = "Linux/UNIX") {
  return fmt::format(R"({{"Timestamp":"{}","ProductDescription":"{}","InstanceType":"{}","SpotPrice":"{}",)"
                     R"("AvailabilityZone":"{}"}})",
                     time, product, type, price, zone);
}

Result<Imported> import_records(const std::vector<std::string>& records, std::string_view rest = "") {
  return import_spot_history(fmt::format(R"({{"SpotPriceHistory":[{}]{}}})", fmt::join(records, ","), rest), "h.json",
                             known_catalog());
}

TEST(ImportSpotHistory, NewestPricePerZoneCountsInWhateverOrder) {
  const auto imported = import_records({record("2024-05-02T10:00:00.000Z", "us-east-1a", "0.95"),
                                        record("2024-05-03T09:00:00.000Z", "us-east-1a", "1.20"),
                                        record("2024-05-01T00:00:00.000Z", "us-east-1a", "0.10"),
                                        record("2024-05-02T00:00:00.000Z", "us-east-1b", "0.90")});
  ASSERT_TRUE(imported) << error_of(imported);
  const auto& [catalog, notes] = *imported;
  const auto& type = catalog.types.at(0);
  // 1a is at 1.20 since the 3rd, 1b at 0.90: the type's price is 0.90, although 1a was at 0.10 once.
  EXPECT_EQ(type.spot->rate, UsdPerHour{0.90});
  ASSERT_EQ(type.zones.size(), 3U);
  EXPECT_EQ(type.zones[0].spot->rate, UsdPerHour{1.20});
  EXPECT_EQ(type.zones[0].on_demand->rate, UsdPerHour{3.06});
  EXPECT_EQ(type.zones[0].quota, 3);
  EXPECT_EQ(type.zones[1].spot, known_catalog().types[0].spot);
  EXPECT_EQ(type.zones[2].zone, "us-east-1b");
  EXPECT_EQ(catalog.sources.at(type.spot->source).id, "aws-spot-history");
  EXPECT_EQ(catalog.sources.at(type.spot->source).date, "2024-05-03");
  EXPECT_EQ(notes, std::vector<std::string>{
                       "zones that the history does not have keep their older spot price (1): p3.2xlarge"});
}

TEST(ImportSpotHistory, OfTwoPricesAsNewTheHigherCounts) {
  const auto low = record("2024-05-02T10:00:00Z", "us-east-1a", "0.80");
  const auto high = record("2024-05-02T10:00:00Z", "us-east-1a", "0.90", "p3.2xlarge", "Linux/UNIX (Amazon VPC)");
  EXPECT_EQ(import_records({low, high})->catalog.types.at(0).spot->rate, UsdPerHour{0.90});
  EXPECT_EQ(import_records({high, low})->catalog.types.at(0).spot->rate, UsdPerHour{0.90});
}

TEST(ImportSpotHistory, OtherProductsUnknownTypesAndFurtherPagesAreNoted) {
  const auto imported = import_records({record("2024-05-02T10:00:00Z", "us-east-1a", "0.1", "p3.2xlarge", "Windows"),
                                        record("2024-05-02T10:00:00Z", "us-east-1a", "0.1", "x9.huge"),
                                        record("2024-05-02T10:00:00Z", "us-east-1b", "0.1", "x9.huge")},
                                       R"(,"NextToken":"abc")");
  ASSERT_TRUE(imported) << error_of(imported);
  EXPECT_EQ(imported->catalog, known_catalog());
  EXPECT_TRUE(has_note(*imported, "no spot price was replaced"));
  EXPECT_TRUE(has_note(*imported, "NextToken is set"));
  EXPECT_TRUE(has_note(*imported, "records of products other than Linux ignored (1): Windows"));
  EXPECT_TRUE(has_note(*imported, "zone prices ignored, the catalogue does not have the types (2): x9.huge (2)"));
}

TEST(ImportSpotHistory, ASecondHistoryLeavesTheSourceOfTheFirstAlone) {
  const auto first = import_records(
      {record("2024-05-02T10:00:00Z", "us-east-1a", "0.8"), record("2024-05-02T10:00:00Z", "us-east-1b", "0.7")});
  ASSERT_TRUE(first) << error_of(first);
  const auto json = fmt::format(R"({{"SpotPriceHistory":[{}]}})", record("2024-06-01T00:00:00Z", "us-east-1a", "0.9"));
  const auto second = import_spot_history(json, "h.json", first->catalog);
  ASSERT_TRUE(second) << error_of(second);
  const auto& [catalog, notes] = *second;
  const auto& zones = catalog.types.at(0).zones;
  EXPECT_EQ(catalog.sources.at(zones.at(0).spot->source).date, "2024-06-01");
  EXPECT_EQ(catalog.sources.at(zones.at(0).spot->source).id, "aws-spot-history-2024-06-01");
  EXPECT_EQ(catalog.sources.at(zones.at(2).spot->source).date, "2024-05-02");
  EXPECT_EQ(catalog.types.at(0).spot->rate, UsdPerHour{0.9});
}

TEST(ImportSpotHistory, ErrorsNameTheRecordAndTheField) {
  const auto good = record("2024-05-02T10:00:00Z", "us-east-1a", "0.8");
  EXPECT_EQ(error_of(import_records({good, record("2024-05-02T10:00:00Z", "us-east-1a", "cheap")})),
            "h.json: SpotPriceHistory[1].SpotPrice: 'cheap', want a price");
  EXPECT_EQ(error_of(import_records({record("2024-02-30T10:00:00Z", "us-east-1a", "0.8")})),
            "h.json: SpotPriceHistory[0].Timestamp: '2024-02-30T10:00:00Z', want a time as 2014-01-06T07:10:55Z");
  EXPECT_EQ(error_of(import_records({"{}"})),
            "h.json: SpotPriceHistory[0].ProductDescription: nothing, want a product");
  EXPECT_EQ(error_of(import_records({record("2024-05-02T10:00:00Z", "z\\u0004", "0.8")})),
            "h.json: SpotPriceHistory[0].AvailabilityZone: 'z\\x04', want a zone without control characters");
  EXPECT_EQ(error_of(import_records({"7"})), "h.json: SpotPriceHistory[0]: number, want an object");
}

TEST(ImportSpotHistory, BadJsonIsAnErrorWithItsLine) {
  EXPECT_TRUE(error_of(import_spot_history("{\n\"SpotPriceHistory\": [\n}", "h.json", {})).starts_with("h.json:3: "));
  EXPECT_TRUE(error_of(import_spot_history("", "h.json", {})).starts_with("h.json:1: "));
  EXPECT_TRUE(error_of(import_spot_history("{\"a\": 1e999}", "h.json", {})).starts_with("h.json: "));
  for (const auto* other : {"[]", "3", "{\"SpotPriceHistory\": 3}"}) {
    EXPECT_TRUE(error_of(import_spot_history(other, "h.json", {})).starts_with("h.json: want the JSON of aws ec2"));
  }
}

}  // namespace
}  // namespace mayfly
