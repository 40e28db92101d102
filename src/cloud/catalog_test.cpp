#include "cloud/catalog.h"

#include <gtest/gtest.h>

#include <map>

namespace mayfly {
namespace {

Catalog shipped(const std::string& name) {
  auto catalog = load_catalog(std::filesystem::path(MAYFLY_SOURCE_DIR) / "data/catalogs" / (name + ".yaml"));
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

TEST(Catalogs, SurviveBeingWrittenAndRead) {
  for (const char* name : {"default", "spotdnn"}) {
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
