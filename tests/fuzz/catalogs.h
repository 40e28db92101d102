#pragma once

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <optional>

#include "cloud/catalog.h"
#include "fuzz/fuzz.h"

namespace mayfly::fuzz {

/// Equal but for the last digits, which a change of unit and back may cost.
inline bool near(const std::optional<BytesPerSecond>& a, const std::optional<BytesPerSecond>& b) {
  if (!a || !b) return !a && !b;
  return std::fabs(a->value - b->value) <= 1e-12 * std::fabs(a->value);
}

inline void check_type(const Catalog& catalog, const InstanceType& type) {
  const auto sources = catalog.sources.size();
  require(catalog.find(type.name) != nullptr, "a type is found by its name");
  require(type.source < sources, "a type's source exists");
  require(!type.gpu || type.gpu_count > 0, "a type with a GPU has at least one");
  require(type.vcpus > 0 && type.memory_gib > 0, "a type has vCPUs and memory");
  for (const auto& rate : {type.network, type.network_burst, type.pcie, type.nvlink}) {
    require(!rate || (std::isfinite(rate->value) && rate->value > 0), "a rate is finite and above 0");
  }
  const auto check_price = [&](const std::optional<Price>& price) {
    if (!price) return;
    require(std::isfinite(price->rate.value) && price->rate.value >= 0, "a price is finite and not negative");
    require(price->source < sources, "a price's source exists");
  };
  check_price(type.on_demand);
  check_price(type.spot);
  for (const auto& zone : type.zones) {
    check_price(zone.on_demand);
    check_price(zone.spot);
  }
  for (const auto& [figure, source] : type.figure_sources) require(source < sources, "a figure's source exists");
}

/// What holds of every catalogue that was read or imported; above all, that it survives being written and read again.
inline void check_catalog(const Catalog& catalog) {
  for (const auto& type : catalog.types) check_type(catalog, type);
  require(std::is_sorted(catalog.types.begin(), catalog.types.end(), [](auto& a, auto& b) { return a.name < b.name; }),
          "types are in the order of their names");
  const auto yaml = catalog_yaml(catalog);
  auto again = parse_catalog(yaml, kFile);
  if (!again) std::fprintf(stderr, "%s\n%s\n", yaml.c_str(), again.error().message.c_str());
  require(again.has_value(), "a written catalogue can be read");
  require(again->types.size() == catalog.types.size(), "a written catalogue has the same types");
  for (std::size_t i = 0; i < catalog.types.size(); ++i) {
    for (const auto rate :
         {&InstanceType::network, &InstanceType::network_burst, &InstanceType::pcie, &InstanceType::nvlink}) {
      require(near(catalog.types[i].*rate, again->types[i].*rate), "a written rate reads the same");
      again->types[i].*rate = catalog.types[i].*rate;
    }
  }
  if (*again != catalog) std::fprintf(stderr, "%s\n", yaml.c_str());
  require(*again == catalog, "a written catalogue reads the same");
}

/// For the importers: what is known of two types.
inline const Catalog& known_catalog() {
  static const Catalog known = *parse_catalog(R"(format: mayfly-catalog/1
name: known
sources:
  vendor: {title: vendor's page, date: 2025-01-01}
  measured: {title: measured, date: 2025-02-01}
gpus:
  V100-16GB: {memory_gib: 16, tflops_fp32: 15.7, tflops_fp16: 125, source: vendor}
  V100-32GB: {memory_gib: 32, tflops_fp32: 15.7, tflops_fp16: 125, source: vendor}
  T4: {memory_gib: 16, tflops_fp32: 8.1, source: vendor}
types:
  p3.2xlarge:
    {cloud: aws, region: us-east-1, gpu: V100-16GB, gpu_count: 1, vcpus: 8, memory_gib: 61, network_burst_gbps: 10,
     pcie_gb_per_s: 10, source: vendor, figure_sources: {pcie_gb_per_s: measured}, quota: 4,
     on_demand: {usd_per_hour: 3.06, source: vendor}, spot: {usd_per_hour: 0.918, source: vendor},
     zones: {us-east-1a: {spot: {usd_per_hour: 0.918, source: vendor}, quota: 2}}}
  m5.xlarge: {cloud: aws, region: us-east-1, vcpus: 4, memory_gib: 16, network_gbps: 1.25, source: vendor}
)",
                                              "known.yaml");
  return known;
}

}  // namespace mayfly::fuzz
