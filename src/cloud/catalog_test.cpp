#include "cloud/catalog.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

namespace mayfly {
namespace {

Catalog shipped(const std::string& name) {
  const auto data = std::filesystem::path(MAYFLY_SOURCE_DIR) / "data";
  auto catalog = load_catalog(data / "catalogs" / (name + ".yaml"), load_catalog(data / "gpus.yaml").value());
  EXPECT_TRUE(catalog.has_value()) << catalog.error().message;
  return *catalog;
}

TEST(DefaultCatalog, CoversTheThreeClouds) {
  const auto catalog = shipped("default");
  std::map<std::string, int> clouds;
  for (const auto& type : catalog.types) ++clouds[type.cloud];
  EXPECT_GE(catalog.types.size(), 60u);
  EXPECT_GE(clouds["aws"], 30);
  EXPECT_GE(clouds["gcp"], 15);
  EXPECT_GE(clouds["azure"], 15);
  for (const char* name : {"p2.8xlarge", "g3.16xlarge", "g4dn.4xlarge", "p3.2xlarge", "m5.xlarge"})
    EXPECT_NE(catalog.find(name), nullptr) << name;
  for (const char* gpu : {"K80", "V100", "T4", "A100", "H100", "L4", "A10G"}) {
    const bool there = std::any_of(catalog.types.begin(), catalog.types.end(),
                                   [&](const auto& t) { return t.gpu && t.gpu->model.starts_with(gpu); });
    EXPECT_TRUE(there) << gpu;
  }
  for (const char* name : {"aws-lambda", "google-cloud-functions", "azure-functions"})
    EXPECT_NE(catalog.find_function(name), nullptr) << name;
}

TEST(DefaultCatalog, HasASourceAndADateForEveryFigureAndSpotBelowOnDemand) {
  const auto catalog = shipped("default");
  for (const auto& source : catalog.sources) {
    EXPECT_FALSE(source.title.empty());
    EXPECT_GT(source.day, 0) << source.id;
  }
  for (const auto& type : catalog.types) {
    EXPECT_TRUE(type.on_demand.has_value()) << type.name;
    if (!type.spot || !type.on_demand) continue;
    EXPECT_LT(type.spot->rate, type.on_demand->rate) << type.name;
  }
}

// K80 at two clouds, P3, G3, NC and NCv3: 3 + 4 of AWS, 2 of GCP, 3 + 3 of Azure.
TEST(DefaultCatalog, MarksRetiredTypesBySourcesThatWereRead) {
  const auto catalog = shipped("default");
  int retired = 0;
  for (const auto& type : catalog.types) {
    if (type.retired.empty()) continue;
    ++retired;
    const auto own = std::find_if(type.figure_sources.begin(), type.figure_sources.end(),
                                  [](const auto& figure) { return figure.first == "retired"; });
    ASSERT_NE(own, type.figure_sources.end()) << type.name;
    EXPECT_FALSE(catalog.sources[own->second].recalled) << type.name;
    EXPECT_FALSE(catalog.sources[own->second].url.empty()) << type.name;
  }
  EXPECT_EQ(retired, 15);
  EXPECT_EQ(catalog.find("p3.2xlarge")->retired, "2025-12-20");
  EXPECT_EQ(catalog.find("g4dn.xlarge")->retired, "");
}

TEST(SpotDnnCatalog, HasThePricesAndQuotasOfTheEvaluation) {
  const auto catalog = shipped("spotdnn");
  const std::vector<std::tuple<const char*, double, int>> expected{{"p3.2xlarge", .918, 2},
                                                                   {"g4dn.4xlarge", .3612, 5},
                                                                   {"g3.8xlarge", .6840, 5},
                                                                   {"g3.16xlarge", 1.5676, 8},
                                                                   {"p2.8xlarge", 2.16, 5}};
  for (const auto& [name, price, quota] : expected) {
    ASSERT_NE(catalog.find(name), nullptr);
    EXPECT_EQ(catalog.find(name)->spot->rate.value, price);
    EXPECT_EQ(catalog.find(name)->quota, quota);
  }
  EXPECT_FALSE(catalog.server_charged);
}

TEST(NewerCatalogs, HavePricesThatWereReadAndGpusWithPeaks) {
  for (const char* name : {"neoclouds", "recent", "trainium"}) {
    const auto catalog = shipped(name);
    for (const auto& type : catalog.types) {
      EXPECT_TRUE(type.on_demand || type.spot) << type.name;
      for (const auto& price : {type.on_demand, type.spot})
        EXPECT_FALSE(price && catalog.sources[price->source].recalled) << type.name;
      EXPECT_TRUE(!type.gpu || type.gpu->tflops_fp16) << type.name;
      EXPECT_FALSE(type.region.empty()) << type.name;
    }
  }
}

TEST(NewerCatalogs, ReplaceNoMachineOfTheDefaultOne) {
  const auto base = shipped("default");
  for (const char* name : {"neoclouds", "recent", "trainium"}) {
    const auto over = shipped(name);
    EXPECT_EQ(merged(base, over).types.size(), base.types.size() + over.types.size()) << name;
  }
}

TEST(Catalogs, SurviveBeingWrittenAndRead) {
  for (const char* name : {"default", "neoclouds", "recent", "spotdnn", "trainium"}) {
    const auto catalog = shipped(name);
    const auto again = parse_catalog(catalog_yaml(catalog), "again.yaml");
    ASSERT_TRUE(again.has_value()) << again.error().message;
    ASSERT_EQ(again->types.size(), catalog.types.size());
    for (std::size_t i = 0; i < catalog.types.size(); ++i)
      EXPECT_EQ(again->types[i], catalog.types[i]) << catalog.types[i].name;
    EXPECT_EQ(again->sources, catalog.sources);
    EXPECT_EQ(again->functions, catalog.functions);
    EXPECT_EQ(again->server_type, catalog.server_type);
  }
}

// What one file says of a GPU holds for types that were read before, and those that follow may name it.
TEST(Catalogs, OfGpusAloneServeTheTypesOfOthers) {
  const auto of_gpu = [](double memory) {
    return fmt::format(
        "format: mayfly-catalog/1\nname: g\nsources: {{s: {{title: t, date: 2024-01-01}}}}\n"
        "gpus: {{X: {{memory_gib: {}, source: s}}}}\n",
        memory);
  };
  const std::string text =
      "format: mayfly-catalog/1\nname: c\nsources: {z: {title: t2, date: 2025-01-01}}\n"
      "types: {a: {cloud: c, gpu: X, gpu_count: 1, vcpus: 1, memory_gib: 1, source: z}}\n";
  const auto first = parse_catalog(of_gpu(16), "g.yaml"), second = parse_catalog(of_gpu(24), "h.yaml");
  ASSERT_TRUE(first && second);
  const auto types = parse_catalog(text, "c.yaml", *first);
  ASSERT_TRUE(types) << types.error().message;
  EXPECT_EQ(types->find("a")->gpu->memory_gib, 16);
  const Catalog both = merged(*types, *second);
  EXPECT_EQ(both.find("a")->gpu->memory_gib, 24);
  EXPECT_EQ(both.sources[both.find("a")->gpu->source].title, "t");
  EXPECT_EQ(both.sources[both.find("a")->source].title, "t2");
}

std::string with_type(const std::string& entry) {
  return "format: mayfly-catalog/1\nname: c\nsources: {s: {title: t, date: 2024-01-01}}\ntypes:\n  a: " + entry + "\n";
}

TEST(Catalogs, SayWhatIsWrong) {
  const std::vector<std::pair<std::string, std::string>> wrong{
      {with_type("{cloud: aws, vcpus: 0, memory_gib: 1, source: s}"),
       "c.yaml:5: types.a.vcpus: '0', want a number above 0"},
      {with_type("{cloud: aws, vcpus: 1, memory_gib: 1, source: z}"),
       "c.yaml:5: types.a.source: source 'z' is not under 'sources'"},
      {with_type("{cloud: aws, gpu: X, gpu_count: 1, vcpus: 1, memory_gib: 1, source: s}"),
       "c.yaml:5: types.a.gpu: 'X' is not under 'gpus'"},
      {with_type("{cloud: aws, vcpu: 1, memory_gib: 1, source: s}"),
       "c.yaml:5: types.a.vcpu: unknown key (did you mean 'vcpus'?)"},
      {"format: mayfly-catalog/1\nname: c\nsources: {s: {title: t, date: yesterday}}\ntypes: {}\n",
       "c.yaml:3: sources.s.date: date 'yesterday': want YYYY-MM-DD"},
      {"format: mayfly-catalog/1\nname: c\nsources: {}\ntypes: {}\n", "c.yaml: no types and no functions"},
      {with_type("{cloud: aws, vcpus: 1, memory_gib: 1, source: s}") + "  " + std::string(201, 'b') + ": {}\n",
       "c.yaml:5: types: a name of 201 bytes, want at most 200, none of them a control character"},
  };
  for (const auto& [text, message] : wrong) {
    const auto catalog = parse_catalog(text, "c.yaml");
    ASSERT_FALSE(catalog.has_value()) << text;
    EXPECT_EQ(catalog.error().message, message);
  }
}

TEST(Machines, AreReadInBothSpellings) {
  const std::vector<MachineCount> both{{"g3.8xlarge", 5}, {"g3.16xlarge", 3}};
  EXPECT_EQ(*parse_machines("g3.8xlarge=5,g3.16xlarge=3"), both);
  EXPECT_EQ(*parse_machines("5xg3.8xlarge, 3xg3.16xlarge"), both);
  EXPECT_EQ(parse_machines("a=1,a=2")->at(0).count, 3);
  EXPECT_EQ(parse_machines("n1-standard-8+V100:1=2")->at(0).type, "n1-standard-8+V100:1");
  for (const char* bad : {"", "a", "a=", "=3", "a=-1", "a=1.5", "a=x", "xg3", "a=1,,b=2", "a=99999999"})
    EXPECT_FALSE(parse_machines(bad)) << bad;
}

TEST(Lookup, SuggestsTheNearestType) {
  EXPECT_EQ(lookup(shipped("spotdnn"), "g3.8xlrage").error().message,
            "instance type 'g3.8xlrage' is not in catalogue 'spotdnn' (did you mean 'g3.8xlarge'?)");
}

}  // namespace
}  // namespace mayfly
