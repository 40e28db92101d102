#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "cloud/instance_type.h"

namespace mayfly {

/// How spot machines of a kind come and go, as far as published figures tell.
struct SpotWeather {
  double losses_per_hour = 0;  ///< per machine held
  double spread = 0;           ///< sd of its logarithm between places and days
  Seconds wait{0};             ///< from a loss until another is there, in the mean
  double together = 0;         ///< share of losses that come as several at once
  std::string source{};        ///< id
  bool operator==(const SpotWeather&) const = default;
};

/// The weather where no trace is given. Format: docs/formats.md#weather.
struct WeatherTable {
  struct Rule {
    std::string cloud{};  ///< of these empty ones hold for all
    std::string gpu{};    ///< model up to its first hyphen
    std::string region{};
    SpotWeather weather{};
  };
  std::vector<Source> sources{};
  std::vector<Rule> rules{};  ///< the last holds for everything
  Seconds start{0};           ///< from an order until a machine is up
  Seconds recovery{0};        ///< training stands still when the cluster changes, for profiles that do not say

  /// The one that says most of the type: its region, then its GPU, then its cloud.
  const Rule& rule_of(const InstanceType& type) const;
  const SpotWeather& of(const InstanceType& type) const { return rule_of(type).weather; }
};

Result<WeatherTable> parse_weather(std::string_view text, const std::string& file);
Result<WeatherTable> load_weather(const std::filesystem::path& path);

}  // namespace mayfly
