#include "cloud/catalog.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>

#include "base/file.h"
#include "base/text.h"

namespace mayfly {

std::string_view name(Market market) {
  switch (market) {
    case Market::on_demand:
      return "on-demand";
    case Market::spot:
      return "spot";
    case Market::serverless:
      break;
  }
  return "serverless";
}

Result<Market> parse_market(std::string_view text) {
  for (const Market market : {Market::on_demand, Market::spot, Market::serverless}) {
    if (text == name(market)) return market;
  }
  return fail("market '{}': want spot, on-demand or serverless", text);
}

std::string_view name(Fabric fabric) {
  constexpr std::array<std::string_view, 4> kNames{"ethernet", "roce", "efa", "infiniband"};
  return kNames[static_cast<std::size_t>(fabric)];
}

const InstanceType* Catalog::find(std::string_view wanted) const {
  const auto at = std::lower_bound(types.begin(), types.end(), wanted,
                                   [](const InstanceType& type, std::string_view key) { return type.name < key; });
  return at != types.end() && at->name == wanted ? &*at : nullptr;
}

const Gpu* Catalog::find_gpu(std::string_view wanted) const {
  const auto at = std::find_if(gpus.begin(), gpus.end(), [&](const Gpu& gpu) { return gpu.model == wanted; });
  return at == gpus.end() ? nullptr : &*at;
}

const FunctionPlatform* Catalog::find_function(std::string_view wanted) const {
  const auto at = std::find_if(functions.begin(), functions.end(), [&](const auto& f) { return f.name == wanted; });
  return at == functions.end() ? nullptr : &*at;
}

std::vector<std::string> Catalog::type_names() const {
  std::vector<std::string> names;
  names.reserve(types.size());
  for (const auto& type : types) names.push_back(type.name);
  return names;
}

Result<const InstanceType*> lookup(const Catalog& catalog, std::string_view name) {
  if (const auto* type = catalog.find(name)) return type;
  return fail("instance type '{}' is not in catalogue '{}'{}", name, catalog.name,
              did_you_mean(name, catalog.type_names()));
}

std::size_t add_source(std::vector<Source>& sources, Source source) {
  const auto taken = [&] {
    return std::any_of(sources.begin(), sources.end(), [&](const Source& other) { return other.id == source.id; });
  };
  if (const auto same = std::find(sources.begin(), sources.end(), source); same != sources.end()) {
    return static_cast<std::size_t>(same - sources.begin());
  }
  while (taken()) source.id += "-" + source.date;
  sources.push_back(std::move(source));
  return sources.size() - 1;
}

namespace {

std::vector<std::string> gpu_names(const Catalog& catalog) {
  std::vector<std::string> names;
  for (const Gpu& gpu : catalog.gpus) names.push_back(gpu.model);
  return names;
}

constexpr std::string_view kFormat = "mayfly-catalog/1";

class CatalogReader {
 public:
  explicit CatalogReader(const Catalog& shared) : shared_(shared) {}

  Catalog read(Section& root) {
    catalog_.name = root.text("name");
    for (auto& [id, entry] : root.section("sources").each()) catalog_.sources.push_back(read_source(id, entry));
    if (auto gpus = root.maybe_section("gpus")) {
      for (auto& [model, entry] : gpus->each()) read_gpu(model, entry);
    }
    if (!catalog_.gpus.empty() && !root.has("types")) return std::move(catalog_);
    for (auto& [type, entry] : root.section("types").each()) read_type(type, entry);
    if (auto functions = root.maybe_section("functions")) {
      for (auto& [name, entry] : functions->each()) read_function(name, entry);
    }
    std::sort(catalog_.types.begin(), catalog_.types.end(),
              [](const auto& a, const auto& b) { return a.name < b.name; });
    if (auto server = root.maybe_section("server")) {
      catalog_.server_type = server->text("type");
      catalog_.server_charged = server->maybe_flag("charged").value_or(true);
      if (server->ok() && catalog_.find(catalog_.server_type) == nullptr) {
        server->reject("type", fmt::format("'{}' is not among the types", catalog_.server_type));
      }
      server->finish();
    }
    return std::move(catalog_);
  }

 private:
  std::size_t source_named(Section& entry, std::string_view key, const std::string& id) {
    for (std::size_t i = 0; i < catalog_.sources.size(); ++i) {
      if (catalog_.sources[i].id == id) return i;
    }
    if (entry.ok()) entry.reject(key, fmt::format("source '{}' is not under 'sources'", id));
    return 0;
  }
  std::size_t source_of(Section& entry) { return source_named(entry, "source", entry.text("source")); }

  void read_gpu(const std::string& model, Section& entry) {
    Gpu gpu{.model = model, .architecture = entry.maybe_text("architecture").value_or("")};
    gpu.memory_gib = entry.number("memory_gib", Range::positive);
    gpu.tflops_fp32 = entry.maybe_number("tflops_fp32", Range::positive);
    gpu.tflops_tf32 = entry.maybe_number("tflops_tf32", Range::positive);
    gpu.tflops_fp16 = entry.maybe_number("tflops_fp16", Range::positive);
    gpu.tflops_fp8 = entry.maybe_number("tflops_fp8", Range::positive);
    gpu.memory_rate = rate(entry.maybe_number("memory_gb_per_s", Range::positive), gigabytes);
    gpu.nvlink = rate(entry.maybe_number("nvlink_gb_per_s", Range::positive), gigabytes);
    gpu.l2_mb = entry.maybe_number("l2_mb", Range::positive);
    gpu.power_w = entry.maybe_number("power_w", Range::positive);
    if (auto measured = entry.maybe_section("measured")) gpu.measured = read_measured(*measured);
    gpu.source = source_of(entry);
    entry.finish();
    catalog_.gpus.push_back(std::move(gpu));
  }

  GpuMeasured read_measured(Section& entry) {
    GpuMeasured measured{.half = entry.maybe_number("half", Range::positive),
                         .full = entry.maybe_number("full", Range::positive),
                         .half_networks = entry.maybe_integer("half_networks").value_or(0),
                         .full_networks = entry.maybe_integer("full_networks").value_or(0),
                         .tuned = entry.maybe_number("tuned", Range::positive),
                         .tuned_fp8 = entry.maybe_number("tuned_fp8", Range::positive)};
    measured.source = source_of(entry);
    entry.finish();
    return measured;
  }

  std::optional<Price> read_price(Section& entry, std::string_view key) {
    auto price = entry.maybe_section(key);
    if (!price) return {};
    const Price result{.rate = {price->number("usd_per_hour", Range::non_negative)}, .source = source_of(*price)};
    price->finish();
    return result;
  }

  static std::optional<Fabric> read_fabric(Section& entry) {
    const auto text = entry.maybe_text("fabric");
    if (!text) return {};
    for (const Fabric fabric : {Fabric::ethernet, Fabric::roce, Fabric::efa, Fabric::infiniband}) {
      if (*text == name(fabric)) return fabric;
    }
    entry.reject("fabric", fmt::format("'{}', want ethernet, roce, efa or infiniband", *text));
    return {};
  }

  static BytesPerSecond gigabytes(double gb) { return {gb * 1e9}; }
  static std::optional<BytesPerSecond> rate(std::optional<double> figure,
                                            const std::function<BytesPerSecond(double)>& unit) {
    return figure ? std::optional(unit(*figure)) : std::nullopt;
  }

  /// The catalogue's own, or one that all share, which then becomes its own.
  const Gpu* gpu_named(std::string_view model) {
    if (const Gpu* own = catalog_.find_gpu(model)) return own;
    const Gpu* known = shared_.find_gpu(model);
    if (known == nullptr) return nullptr;
    Gpu gpu = *known;
    gpu.source = add_source(catalog_.sources, shared_.sources[known->source]);
    if (gpu.measured) gpu.measured->source = add_source(catalog_.sources, shared_.sources[known->measured->source]);
    return &catalog_.gpus.emplace_back(std::move(gpu));
  }

  void read_type(const std::string& type_name, Section& entry) {
    InstanceType type{.name = type_name, .cloud = entry.text("cloud")};
    type.region = entry.maybe_text("region").value_or("");
    if (const auto model = entry.maybe_text("gpu")) {
      type.gpu_count = entry.integer("gpu_count");
      if (const Gpu* gpu = gpu_named(*model)) {
        type.gpu = *gpu;
      } else {
        entry.reject("gpu", fmt::format("'{}' is not under 'gpus'{}{}", *model,
                                        shared_.gpus.empty() ? "" : ", nor among the GPUs that all catalogues share",
                                        did_you_mean(*model, gpu_names(shared_))));
      }
    }
    type.vcpus = entry.number("vcpus", Range::positive);
    type.memory_gib = entry.number("memory_gib", Range::positive);
    type.network = rate(entry.maybe_number("network_gbps", Range::positive), gigabits_per_second);
    type.network_burst = rate(entry.maybe_number("network_burst_gbps", Range::positive), gigabits_per_second);
    type.fabric = read_fabric(entry);
    type.fabric_rate = rate(entry.maybe_number("fabric_gbps", Range::positive), gigabits_per_second);
    type.pcie = rate(entry.maybe_number("pcie_gb_per_s", Range::positive), gigabytes);
    type.nvlink = rate(entry.maybe_number("nvlink_gb_per_s", Range::positive), gigabytes);
    type.peer_to_peer = entry.maybe_flag("peer_to_peer");
    type.retired = entry.maybe_text("retired").value_or("");
    if (!type.retired.empty() && entry.ok()) {
      if (const auto day = parse_date(type.retired); !day) entry.reject("retired", day.error().message);
    }
    type.source = source_of(entry);
    if (const Value* sources = entry.raw("figure_sources")) read_figure_sources(entry, *sources, type);
    type.on_demand = read_price(entry, "on_demand");
    type.spot = read_price(entry, "spot");
    type.quota = entry.maybe_integer("quota", Range::non_negative);
    if (auto zones = entry.maybe_section("zones")) {
      for (auto& [zone, prices] : zones->each()) {
        type.zones.push_back({.zone = zone,
                              .on_demand = read_price(prices, "on_demand"),
                              .spot = read_price(prices, "spot"),
                              .quota = prices.maybe_integer("quota", Range::non_negative)});
        prices.finish();
      }
    }
    entry.finish();
    catalog_.types.push_back(std::move(type));
  }

  void read_figure_sources(Section& entry, const Value& sources, InstanceType& type) {
    if (sources.kind != Value::Kind::map) return entry.reject("figure_sources", "want a mapping of figure to source");
    for (const auto& [figure, id] : sources.entries) {
      if (!entry.has(figure) || figure == "zones" || figure == "figure_sources")
        entry.reject("figure_sources", fmt::format("names '{}', which this entry does not state", figure));
      type.figure_sources.emplace_back(figure, source_named(entry, "figure_sources", id.scalar));
    }
  }

  void read_function(const std::string& platform_name, Section& entry) {
    FunctionPlatform platform{.name = platform_name, .cloud = entry.text("cloud")};
    platform.memory_mib_min = entry.integer("memory_mib_min");
    platform.memory_mib_max = entry.integer("memory_mib_max");
    platform.memory_mib_step = entry.integer("memory_mib_step");
    platform.timeout = Seconds(entry.number("timeout_s", Range::positive));
    platform.usd_per_gib_s = entry.number("usd_per_gib_s", Range::non_negative);
    platform.usd_per_request = entry.maybe_number("usd_per_request", Range::non_negative).value_or(0);
    platform.mib_per_vcpu = entry.maybe_number("mib_per_vcpu", Range::positive);
    platform.source = source_of(entry);
    if (const Value* sources = entry.raw("figure_sources")) {
      for (const auto& [figure, source] : sources->entries) {
        if (!entry.has(figure))
          entry.reject("figure_sources", fmt::format("names '{}', which this entry does not state", figure));
        platform.figure_sources.emplace_back(figure, source_named(entry, "figure_sources", source.scalar));
      }
    }
    if (entry.ok() && platform.memory_mib_max < platform.memory_mib_min) {
      entry.reject("memory_mib_max", "is below memory_mib_min");
    }
    entry.finish();
    catalog_.functions.push_back(std::move(platform));
  }

  const Catalog& shared_;
  Catalog catalog_;
};

}  // namespace

Source read_source(const std::string& id, Section& entry) {
  Source source{.id = id, .title = entry.text("title"), .url = entry.maybe_text("url").value_or("")};
  source.date = entry.text("date");
  source.recalled = entry.maybe_flag("recalled").value_or(false);
  source.date_uncertain = entry.maybe_flag("date_uncertain").value_or(false);
  source.note = entry.maybe_text("note").value_or("");
  if (entry.ok()) {
    const auto day = parse_date(source.date);
    if (day) {
      source.day = *day;
    } else {
      entry.reject("date", day.error().message);
    }
  }
  entry.finish();
  return source;
}

Result<Catalog> parse_catalog(std::string_view text, const std::string& file, const Catalog& shared) {
  bool gpus_alone = false;
  auto catalog = read_document(text, file, kFormat, [&](Section& root) {
    gpus_alone = root.has("gpus") && !root.has("types");
    return CatalogReader(shared).read(root);
  });
  if (catalog && catalog->types.empty() && catalog->functions.empty() && !gpus_alone)
    return fail("{}: no types and no functions", file);
  return catalog;
}

Result<Catalog> load_catalog(const std::filesystem::path& path, const Catalog& shared) {
  const auto text = load_text(path);
  if (!text) return unexpected(text.error());
  return parse_catalog(*text, path.string(), shared);
}

Result<std::vector<MachineCount>> parse_machines(std::string_view text) {
  std::vector<MachineCount> machines;
  const auto wanted = [&](std::string_view part) {
    return fail("machines '{}': want type=count or countxtype, comma-separated, for example g3.8xlarge=5,2xp3.2xlarge",
                part);
  };
  for (const auto part : split(text, ',')) {
    const auto item = trimmed(part);
    std::string type;
    std::optional<int> count;
    if (const auto equals = item.find('='); equals != std::string_view::npos) {
      type = trimmed(item.substr(0, equals));
      count = parse_integer(trimmed(item.substr(equals + 1)));
    } else if (const auto times = item.find('x'); times != std::string_view::npos) {
      count = parse_integer(item.substr(0, times));
      type = trimmed(item.substr(times + 1));
    }
    constexpr int kMost = 1'000'000;
    if (type.empty() || !count || *count < 0 || *count > kMost) return wanted(item);
    const auto seen = std::find_if(machines.begin(), machines.end(), [&](const auto& m) { return m.type == type; });
    if (seen == machines.end()) {
      machines.push_back({type, *count});
    } else if (seen->count + *count > kMost) {
      return wanted(item);
    } else {
      seen->count += *count;
    }
  }
  return machines;
}

std::string machines_text(const std::vector<MachineCount>& machines) {
  std::string text;
  for (const auto& [type, count] : machines) {
    if (count == 0) continue;
    text += fmt::format("{}{} x {}", text.empty() ? "" : " + ", count, type);
  }
  return text.empty() ? "nothing" : text;
}

}  // namespace mayfly
