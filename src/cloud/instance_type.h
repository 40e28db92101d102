#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace mayfly {

enum class Market { on_demand, spot, serverless };
std::string_view name(Market market);
Result<Market> parse_market(std::string_view text);

/// Where a figure comes from and of what day it is.
struct Source {
  std::string id{};
  std::string title{};
  std::string url{};
  int day = 0;  ///< since 1970-01-01
  std::string date{};
  bool recalled = false;  ///< stated by the named page as far as known, but not read there
  bool date_uncertain = false;
  std::string note{};
  bool operator==(const Source&) const = default;
};

struct Price {
  UsdPerHour rate{};
  std::size_t source = 0;  ///< index into Catalog::sources
  bool operator==(const Price&) const = default;
};

/// Peak figures are the vendor's, per GPU, dense.
struct Gpu {
  std::string model{};
  double memory_gib = 0;
  std::optional<double> tflops_fp32{};
  std::optional<double> tflops_fp16{};
  std::size_t source = 0;
  bool operator==(const Gpu&) const = default;
};

/// A zone that prices a type differently, or limits it.
struct ZonePrice {
  std::string zone{};
  std::optional<Price> on_demand{};
  std::optional<Price> spot{};
  std::optional<int> quota{};
  bool operator==(const ZonePrice&) const = default;
};

/// A machine that can be rented. What is not known is absent: no model may put a number in its place.
struct InstanceType {
  std::string name{};
  std::string cloud{};
  std::string region{};
  std::optional<Gpu> gpu{};
  int gpu_count = 0;
  double vcpus = 0;
  double memory_gib = 0;
  std::optional<BytesPerSecond> network{};        ///< sustained, one direction
  std::optional<BytesPerSecond> network_burst{};  ///< the provider's "up to"
  std::optional<BytesPerSecond> pcie{};           ///< per GPU, one way
  std::optional<BytesPerSecond> nvlink{};         ///< per GPU
  std::optional<Price> on_demand{};
  std::optional<Price> spot{};
  std::optional<int> quota{};
  std::vector<ZonePrice> zones{};
  std::size_t source = 0;
  std::vector<std::pair<std::string, std::size_t>> figure_sources{};  ///< figures whose source is another
  bool operator==(const InstanceType&) const = default;

  /// The rate a long exchange may count on; a burst figure only where nothing better is stated.
  std::optional<BytesPerSecond> usable_network() const { return network ? network : network_burst; }
  const std::optional<Price>& price(Market market) const { return market == Market::spot ? spot : on_demand; }
};

/// A function service: what one function may use and what it costs.
struct FunctionPlatform {
  std::string name{};
  std::string cloud{};
  int memory_mib_min = 0;
  int memory_mib_max = 0;
  int memory_mib_step = 1;
  Seconds timeout{};
  double usd_per_gib_s = 0;
  double usd_per_request = 0;
  std::optional<double> mib_per_vcpu{};
  std::size_t source = 0;
  std::vector<std::pair<std::string, std::size_t>> figure_sources{};
  bool operator==(const FunctionPlatform&) const = default;
};

}  // namespace mayfly
