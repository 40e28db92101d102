#include <fmt/format.h>

#include "cloud/catalog.h"

namespace mayfly {
namespace {

/// A text as YAML: quoted wherever a plain one could be read as something else.
std::string in_quotes(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    const auto byte = static_cast<unsigned char>(c);
    result += byte < 0x20 || byte == 0x7f ? fmt::format("\\x{:02x}", byte) : std::string(1, c);
  }
  return result + '"';
}

std::string price_yaml(const Catalog& catalog, std::string_view key, const std::optional<Price>& price, int indent) {
  if (!price) return {};
  return fmt::format("{:{}}{}: {{usd_per_hour: {}, source: {}}}\n", "", indent, key, price->rate.value,
                     in_quotes(catalog.sources[price->source].id));
}

std::string figure_sources_yaml(const Catalog& catalog, const std::vector<std::pair<std::string, std::size_t>>& list) {
  std::string out = list.empty() ? "" : "    figure_sources:\n";
  for (const auto& [figure, source] : list) {
    out += fmt::format("      {}: {}\n", figure, in_quotes(catalog.sources[source].id));
  }
  return out;
}

std::string measured_yaml(const Catalog& catalog, const GpuMeasured& measured) {
  std::string out = "    measured:\n";
  const auto figure = [&](std::string_view key, const std::optional<double>& value) {
    if (value) out += fmt::format("      {}: {}\n", key, *value);
  };
  const auto count = [&](std::string_view key, int value) {
    if (value > 0) out += fmt::format("      {}: {}\n", key, value);
  };
  figure("half", measured.half);
  figure("full", measured.full);
  count("half_networks", measured.half_networks);
  count("full_networks", measured.full_networks);
  figure("tuned", measured.tuned);
  figure("tuned_fp8", measured.tuned_fp8);
  return out + fmt::format("      source: {}\n", in_quotes(catalog.sources[measured.source].id));
}

std::string type_yaml(const Catalog& catalog, const InstanceType& type) {
  std::string out = fmt::format("  {}:\n    cloud: {}\n", in_quotes(type.name), in_quotes(type.cloud));
  const auto line = [&](std::string_view key, auto value) { out += fmt::format("    {}: {}\n", key, value); };
  if (!type.region.empty()) line("region", in_quotes(type.region));
  if (type.gpu) {
    line("gpu", in_quotes(type.gpu->model));
    line("gpu_count", type.gpu_count);
  }
  line("vcpus", type.vcpus);
  line("memory_gib", type.memory_gib);
  if (type.network) line("network_gbps", type.network->value * 8 / 1e9);
  if (type.network_burst) line("network_burst_gbps", type.network_burst->value * 8 / 1e9);
  if (type.fabric) line("fabric", name(*type.fabric));
  if (type.fabric_rate) line("fabric_gbps", type.fabric_rate->value * 8 / 1e9);
  if (type.pcie) line("pcie_gb_per_s", type.pcie->value / 1e9);
  if (type.nvlink) line("nvlink_gb_per_s", type.nvlink->value / 1e9);
  if (type.peer_to_peer) line("peer_to_peer", *type.peer_to_peer);
  if (!type.retired.empty()) line("retired", type.retired);
  line("source", in_quotes(catalog.sources[type.source].id));
  out += figure_sources_yaml(catalog, type.figure_sources);
  out += price_yaml(catalog, "on_demand", type.on_demand, 4);
  out += price_yaml(catalog, "spot", type.spot, 4);
  if (type.quota) line("quota", *type.quota);
  if (!type.zones.empty()) out += "    zones:\n";
  for (const auto& zone : type.zones) {
    out += fmt::format("      {}:\n", in_quotes(zone.zone));
    out += price_yaml(catalog, "on_demand", zone.on_demand, 8);
    out += price_yaml(catalog, "spot", zone.spot, 8);
    if (zone.quota) out += fmt::format("        quota: {}\n", *zone.quota);
  }
  return out;
}

}  // namespace

std::string catalog_yaml(const Catalog& catalog) {
  std::string out = fmt::format("format: mayfly-catalog/1\nname: {}\nsources:\n", in_quotes(catalog.name));
  for (const auto& source : catalog.sources) {
    out += fmt::format("  {}:\n    title: {}\n", in_quotes(source.id), in_quotes(source.title));
    if (!source.url.empty()) out += fmt::format("    url: {}\n", in_quotes(source.url));
    out += fmt::format("    date: {}\n", source.date);
    if (source.recalled) out += "    recalled: true\n";
    if (source.date_uncertain) out += "    date_uncertain: true\n";
    if (!source.note.empty()) out += fmt::format("    note: {}\n", in_quotes(source.note));
  }
  if (!catalog.gpus.empty()) out += "gpus:\n";
  for (const auto& gpu : catalog.gpus) {
    out += fmt::format("  {}:\n    memory_gib: {}\n", in_quotes(gpu.model), gpu.memory_gib);
    if (!gpu.architecture.empty()) out += fmt::format("    architecture: {}\n", in_quotes(gpu.architecture));
    const auto figure = [&](std::string_view key, const std::optional<double>& value) {
      if (value) out += fmt::format("    {}: {}\n", key, *value);
    };
    const auto rate = [&](std::string_view key, const std::optional<BytesPerSecond>& value) {
      if (value) figure(key, value->value / 1e9);
    };
    figure("tflops_fp32", gpu.tflops_fp32);
    figure("tflops_tf32", gpu.tflops_tf32);
    figure("tflops_fp16", gpu.tflops_fp16);
    figure("tflops_fp8", gpu.tflops_fp8);
    rate("memory_gb_per_s", gpu.memory_rate);
    rate("nvlink_gb_per_s", gpu.nvlink);
    figure("l2_mb", gpu.l2_mb);
    figure("power_w", gpu.power_w);
    if (gpu.measured) out += measured_yaml(catalog, *gpu.measured);
    out += fmt::format("    source: {}\n", in_quotes(catalog.sources[gpu.source].id));
  }
  out += catalog.types.empty() ? "types: {}\n" : "types:\n";
  for (const auto& type : catalog.types) out += type_yaml(catalog, type);
  if (!catalog.functions.empty()) out += "functions:\n";
  for (const auto& f : catalog.functions) {
    out +=
        fmt::format("  {}:\n    cloud: {}\n    memory_mib_min: {}\n    memory_mib_max: {}\n    memory_mib_step: {}\n",
                    in_quotes(f.name), in_quotes(f.cloud), f.memory_mib_min, f.memory_mib_max, f.memory_mib_step);
    out += fmt::format("    timeout_s: {}\n    usd_per_gib_s: {}\n    usd_per_request: {}\n", f.timeout.count(),
                       f.usd_per_gib_s, f.usd_per_request);
    if (f.mib_per_vcpu) out += fmt::format("    mib_per_vcpu: {}\n", *f.mib_per_vcpu);
    out += fmt::format("    source: {}\n", in_quotes(catalog.sources[f.source].id));
    out += figure_sources_yaml(catalog, f.figure_sources);
  }
  if (!catalog.server_type.empty()) {
    out += fmt::format("server: {{type: {}, charged: {}}}\n", in_quotes(catalog.server_type), catalog.server_charged);
  }
  return out;
}

}  // namespace mayfly
