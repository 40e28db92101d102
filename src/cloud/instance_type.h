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

/// What was measured on a GPU beyond its peaks: docs/models.md#gpus.
struct GpuMeasured {
  std::optional<double> half{};  ///< speed against what the peaks let expect, with half precision
  std::optional<double> full{};  ///< with 32 bits
  int half_networks = 0;         ///< that it was measured on
  int full_networks = 0;
  std::optional<double> tuned{};  ///< share of its peak that tuned products of matrices reach
  std::optional<double> tuned_fp8{};
  std::size_t source = 0;
  bool operator==(const GpuMeasured&) const = default;
};

/// A GPU or another accelerator. Peak figures are the vendor's, of one: products of dense matrices. What it does not
/// have, or what is not known of it, is absent.
struct Gpu {
  std::string model{};
  std::string architecture{};  ///< "hopper"; may be empty
  double memory_gib = 0;
  std::optional<double> tflops_fp32{};
  std::optional<double> tflops_tf32{};
  std::optional<double> tflops_fp16{};  ///< fp16 and bf16, summed in fp32
  std::optional<double> tflops_fp8{};
  std::optional<BytesPerSecond> memory_rate{};  ///< of its own memory
  std::optional<BytesPerSecond> nvlink{};       ///< one way, all its links together
  std::optional<double> l2_mb{};                ///< second-level cache
  std::optional<double> power_w{};
  std::optional<GpuMeasured> measured{};
  std::size_t source = 0;
  bool operator==(const Gpu&) const = default;
};

/// What machines of one kind are connected by. Of plain Ethernet, TCP is what a ring gets.
enum class Fabric { ethernet, roce, efa, infiniband };
std::string_view name(Fabric fabric);

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
  std::optional<Fabric> fabric{};                 ///< absent: not known to be better than Ethernet
  std::optional<BytesPerSecond> fabric_rate{};    ///< all its adapters, one direction; absent: `network`
  std::optional<BytesPerSecond> pcie{};           ///< per GPU, one way
  std::optional<BytesPerSecond> nvlink{};         ///< per GPU, one way
  std::optional<bool> peer_to_peer{};             ///< its GPUs reach each other's memory over PCIe
  std::optional<Price> on_demand{};
  std::optional<Price> spot{};
  std::optional<int> quota{};
  std::vector<ZonePrice> zones{};
  std::string retired{};  ///< the day on which the cloud retires it (YYYY-MM-DD); empty: none is known
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
