#include "cloud/spot_weather.h"

#include <gtest/gtest.h>

namespace mayfly {
namespace {

InstanceType machine(const std::string& cloud, const std::string& gpu, const std::string& region) {
  return {.name = "m", .cloud = cloud, .region = region, .gpu = Gpu{.model = gpu}, .gpu_count = 1};
}

TEST(SpotWeather, TheRuleThatSaysMostCounts) {
  const auto table = load_weather(MAYFLY_SOURCE_DIR "/data/weather.yaml");
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(table->of(machine("gcp", "V100-16GB", "us-west1")).losses_per_hour, 0.0961);
  EXPECT_EQ(table->of(machine("gcp", "V100-16GB", "nowhere")).losses_per_hour, 0.0489);
  EXPECT_EQ(table->of(machine("gcp", "L4-24GB", "us-west1")).losses_per_hour, 0.0399);
  EXPECT_EQ(table->of(machine("azure", "A100-80GB", "eastus")).losses_per_hour, 0.0763);
  EXPECT_EQ(table->of(machine("aws", "T4G-16GB", "us-east-1")).losses_per_hour, 0.365);  // another GPU than the T4
}

// Nineteen places: the middle one and the deviation of the logarithm are what holds where nothing was published.
TEST(SpotWeather, WhatIsNotKnownIsAsWideAsWhatIs) {
  const auto table = load_weather(MAYFLY_SOURCE_DIR "/data/weather.yaml").value();
  for (const auto& rule : table.rules) EXPECT_LE(rule.weather.spread, table.rules.back().weather.spread);
}

TEST(SpotWeather, SaysWhatIsWrong) {
  const std::string head =
      "format: mayfly-weather/1\nsources: {s: {title: t, date: 2024-01-01}}\nstart_s: 1\nrecovery_s: 1\n"
      "start_source: s\nrules:\n";
  EXPECT_EQ(parse_weather(head + "  - {losses_per_hour: 1, spread: 0, wait_s: 1, together: 0, source: z}\n", "w")
                .error()
                .message,
            "w:7: rules[0].source: source 'z' is not under 'sources'");
  EXPECT_EQ(
      parse_weather(head + "  - {cloud: aws, losses_per_hour: 1, spread: 0, wait_s: 1, together: 0, source: s}\n", "w")
          .error()
          .message,
      "w:7: rules: want a last rule that holds for every type: without cloud, gpu and region");
  EXPECT_FALSE(parse_weather(head + "  - {losses_per_hour: -1, spread: 0, wait_s: 1, together: 0, source: s}\n", "w"));
}

}  // namespace
}  // namespace mayfly
