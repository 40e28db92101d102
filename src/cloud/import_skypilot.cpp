#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/text.h"
#include "cloud/csv_rows.h"
#include "cloud/gpu_name.h"
#include "cloud/import.h"
#include "cloud/skypilot_cloud.h"
#include "cloud/skypilot_row.h"

namespace mayfly {
namespace {

/// One type on its way, from all its rows.
struct Machine {
  InstanceType type{};
  std::string accelerator{};
  std::string gpu_name{};
  SkypilotFigures figures{};
  bool differs = false;  ///< its rows state different figures
  int line = 0;
  std::map<std::string, ZonePrice> zones{};
};

/// True where `usd` is the new cheapest. The prices' source is the importer's first.
bool keep_cheaper(std::optional<Price>& kept, std::optional<double> usd) {
  if (!usd || (kept && kept->rate.value <= *usd)) return false;
  kept = Price{.rate = {*usd}, .source = 0};
  return true;
}

bool is_gpu(std::string_view accelerator) {
  constexpr std::array<std::string_view, 7> kOthers = {"Inferentia", "Trainium", "tpu-",    "Gaudi",
                                                       "Habana",     "FPGA",     "Qualcomm"};
  return std::none_of(kOthers.begin(), kOthers.end(),
                      [&](auto other) { return accelerator.find(other) != std::string_view::npos; });
}

/// GCP sells these families with GPUs only, and SkyPilot's file prices the GPUs in rows of their own.
bool is_gcp_gpu_family(std::string_view type) {
  constexpr std::array<std::string_view, 6> kFamilies = {"a2-", "a3-", "a4-", "a4x-", "g2-", "g4-"};
  return std::any_of(kFamilies.begin(), kFamilies.end(), [&](auto family) { return type.starts_with(family); });
}

/// Azure's sixth, third and half of an A10 (its page "NVadsA10 v5-series"), which SkyPilot's file counts as 1.
bool is_part_of_a10(std::string_view type) {
  return type == "Standard_NV6ads_A10_v5" || type == "Standard_NV12ads_A10_v5" || type == "Standard_NV18ads_A10_v5";
}

/// How the memory of a GPU may be meant. Files of one cloud differ: RunPod's had GiB for years.
struct Reading {
  double gib = 0;
  std::string_view remark{};
};

std::vector<Reading> readings(double size, double count, bool total_first) {
  constexpr std::string_view kTotal = "GPUs whose memory the file states of all together, divided";
  std::vector<Reading> all{{size / 1024, {}}};
  if (count > 1) all.push_back({size / 1024 / count, kTotal});
  if (total_first && count > 1) std::swap(all[0], all[1]);
  all.push_back({size, "GPUs whose memory the file states in GiB, not MiB, corrected"});
  if (count > 1)
    all.push_back({size / count, "GPUs whose memory the file states in GiB and of all together, corrected"});
  all.push_back({size / (1024.0 * 1024 * 1024), "GPUs whose memory the file states in bytes, corrected"});
  return all;
}

/// No accelerator has less or more.
bool plausible(double gib) { return gib >= 1 && gib <= 1024; }

class SkypilotImport {
 public:
  SkypilotImport(const Catalog& known, const std::string& file, const ImportOptions& options,
                 const SkypilotCloud& cloud, Source source)
      : known_(known), file_(file), cloud_(cloud), copied_(known.sources.size()) {
    result_.catalog.name = options.name;
    result_.catalog.sources.push_back(std::move(source));
  }

  void add(const SkypilotRow& row) {
    if (row.type.empty()) return note("accelerator-only rows, priced apart from the VM, not imported", row.accelerator);
    auto at = machines_.find(row.type);
    const bool fresh = at == machines_.end();
    if (fresh) at = machines_.emplace(row.type, Machine{}).first;
    Machine& machine = at->second;
    const auto price = offered(row.price, row.type);
    const auto spot_price = offered(row.spot_price, row.type);
    machine.differs = machine.differs || !(fresh || row.figures == machine.figures);
    const bool cheaper = keep_cheaper(machine.type.on_demand, price);
    const bool cheaper_spot = keep_cheaper(machine.type.spot, spot_price) && !machine.type.on_demand;
    if (fresh || cheaper || cheaper_spot) describe(machine, row);
    if (row.zone.empty() || (!price && !spot_price)) return;
    ZonePrice& zone = machine.zones[std::string(row.zone)];
    keep_cheaper(zone.on_demand, price);
    keep_cheaper(zone.spot, spot_price);
  }

  Result<Imported> finish() && {
    for (auto& [name, machine] : machines_) {
      const InstanceType* known = known_.find(name);
      if (known != nullptr && known->cloud != cloud_.name) known = nullptr;
      if (complete(name, machine, known)) result_.catalog.types.push_back(std::move(machine.type));
    }
    for (auto& [model, gpu] : gpus_) {
      if (!gpu.tflops_fp32 && !gpu.tflops_fp16) note("GPUs without TFLOPS, the known catalogue has none", model);
      result_.catalog.gpus.push_back(gpu);
    }
    if (error_) return unexpected(*error_);
    for (const auto& [what, counts] : remarks_) result_.notes.push_back(count_note(what, counts));
    if (!cloud_.remark.empty()) result_.notes.push_back(fmt::format("{}: {}", cloud_.name, cloud_.remark));
    return std::move(result_);
  }

 private:
  /// `what`, a literal, will precede the count and the names.
  void note(std::string_view what, std::string_view name) { ++remarks_[what][std::string(name)]; }

  /// Vast writes 0 where there is no spot offer.
  std::optional<double> offered(std::optional<double> usd, std::string_view type) {
    if (usd != 0) return usd;
    note("types with prices of 0, taken for no offer", type);
    return {};
  }

  /// The figures go with the price: rows of one type may be machines of several providers.
  void describe(Machine& machine, const SkypilotRow& row) const {
    machine.type.region = region_of(cloud_, row.type, row.region);
    machine.accelerator = accelerator_of(cloud_, row.type, row.accelerator);
    machine.gpu_name = row.gpu_name;
    machine.figures = row.figures;
    machine.line = row.line;
  }

  /// The new catalogue's index of a source of `known`.
  std::size_t copied(std::size_t source) {
    if (!copied_[source]) copied_[source] = add_source(result_.catalog.sources, known_.sources[source]);
    return *copied_[source];
  }

  /// False, with a note, where too little is known of the machine to import it.
  bool complete(const std::string& name, Machine& machine, const InstanceType* known) {
    InstanceType& type = machine.type;
    type.name = name;
    type.cloud = cloud_.name;
    type.vcpus = machine.figures.vcpus.value_or(0);
    type.memory_gib = machine.figures.memory_gib.value_or(0);
    const auto skip = [&](std::string_view why) { return note(why, name), false; };
    if (!type.on_demand && !type.spot) return skip("types skipped, no row has a price");
    const bool sized = known || (type.vcpus > 0 && type.memory_gib > 0);
    if (!sized) return skip("types skipped, vCPUs or memory are not stated");
    if (type.vcpus != std::floor(type.vcpus)) return skip("types skipped, they have no whole number of vCPUs");
    if (!set_gpu(type, machine, known)) return false;
    if (known) take_figures(machine, *known);
    if (machine.differs) note("types whose rows differ in size, that of the cheapest is used", name);
    for (const auto& [zone, prices] : machine.zones) type.zones.emplace_back(prices).zone = zone;
    if (!type.usable_network()) note("types without a network rate, the known catalogue has none", name);
    return true;
  }

  /// False, with a note, where the type's GPUs are not known well enough to import it.
  bool set_gpu(InstanceType& type, const Machine& machine, const InstanceType* known) {
    const std::string& name = machine.accelerator;
    const auto skip = [&](std::string_view why, std::string_view what) { return note(why, what), false; };
    const int known_count = known && known->gpu ? known->gpu_count : 0;
    if (name.empty() && known_count == 0 && !(cloud_.name == "gcp" && is_gcp_gpu_family(type.name))) return true;
    if (name.empty()) return skip("types skipped, their rows do not name, nor surely price, their GPUs", type.name);
    if (!is_gpu(name)) return skip("types skipped, their accelerator is not a GPU", name);
    const double count = machine.figures.gpu_count.value_or(known_count);
    const bool whole = count >= 1 && count <= 1e6 && count == std::floor(count) && !is_part_of_a10(type.name);
    if (!whole) return skip("types skipped, they have no whole number of GPUs", name);
    const auto named = name_of(machine);
    const auto gib = gpu_gib(machine, named, known);
    if (error_) return false;
    const Gpu* like = known_gpu(machine, named, known, gib);
    if (!like && !gib) {
      return skip("types skipped, the GPU's memory is stated neither here nor in the known catalogue", name);
    }
    type.gpu = placed_gpu(machine, like, gib);
    type.gpu_count = static_cast<int>(count);
    if (!(known && known->gpu) && form_is_open(known_.gpus, named, gib)) {
      note("GPUs whose form is not stated, taken for the SXM one", name);
    }
    if (known_count != 0 && known_count != type.gpu_count) {
      note("types whose number of GPUs the known catalogue states otherwise, the CSV's is used",
           fmt::format("{} {} not {}", type.name, type.gpu_count, known_count));
    }
    return true;
  }

  /// The accelerator's name, with a form that only GpuInfo ("A100 PCIe") or the type ("gpu_1x_h100_pcie") has.
  GpuName name_of(const Machine& machine) const {
    auto name = gpu_name(machine.accelerator);
    if (name.form.empty()) name.form = form_in(machine.gpu_name);
    if (name.form.empty()) name.form = form_in(machine.type.name);
    return name;
  }

  /// GiB of one GPU, read as the unit in which a known GPU has it, else as the first that is plausible.
  std::optional<double> gpu_gib(const Machine& machine, const GpuName& name, const InstanceType* known) {
    if (!machine.figures.gpu_size) {
      if (name.gib <= 0 || known_gpu(machine, name, known, {})) return {};
      return name.gib;
    }
    const auto all = readings(*machine.figures.gpu_size, machine.figures.gpu_count.value_or(1), cloud_.total_memory);
    const auto known_so = [&](const Reading& r) { return plausible(r.gib) && known_gpu(machine, name, known, r.gib); };
    auto best = std::find_if(all.begin(), all.end(), known_so);
    if (best == all.end()) {
      best = std::find_if(all.begin(), all.end(), [](const Reading& r) { return plausible(r.gib); });
    }
    if (best == all.end()) {
      error_ =
          Error{fmt::format("{}:{}: column 'GpuInfo': SizeInMiB '{:g}' of a {}, want the MiB of one, 1024 to 1048576",
                            file_, machine.line, *machine.figures.gpu_size, machine.accelerator)};
      return {};
    }
    if (!best->remark.empty()) {
      note(best->remark,
           fmt::format("{} {:.4g} GiB of {:g}", machine.accelerator, best->gib, *machine.figures.gpu_size));
    }
    return best->gib;
  }

  /// The GPU of `known` that the machine's accelerator is; none where several could be meant.
  const Gpu* known_gpu(const Machine& machine, const GpuName& name, const InstanceType* known,
                       std::optional<double> gib) const {
    const auto fits = [&](const Gpu& gpu) { return !gib || same_memory(gpu.memory_gib, *gib); };
    if (known && known->gpu && fits(*known->gpu) && gpu_name(known->gpu->model).family == name.family) {
      return &*known->gpu;
    }
    const auto same = std::find_if(known_.gpus.begin(), known_.gpus.end(), [&](const Gpu& gpu) {
      return gpu.model == machine.accelerator && gpu_name(gpu.model).form == name.form && fits(gpu);
    });
    return same == known_.gpus.end() ? gpu_named(known_.gpus, name, gib) : &*same;
  }

  Gpu placed_gpu(const Machine& machine, const Gpu* like, std::optional<double> gib) {
    Gpu gpu = like ? *like : Gpu{.model = machine.accelerator};
    if (like) gpu.source = copied(like->source);
    if (like && like->measured) gpu.measured->source = copied(like->measured->source);
    if (gib) gpu.memory_gib = *gib;
    auto [place, fresh] = gpus_.try_emplace(gpu.model, gpu);
    if (!fresh && !same_memory(place->second.memory_gib, gpu.memory_gib)) {
      gpu.model += fmt::format("-{:.4g}GB", gpu.memory_gib);
      place = gpus_.try_emplace(gpu.model, gpu).first;
    }
    if (fresh && like && std::abs(gpu.memory_gib - like->memory_gib) > 0.01 * like->memory_gib) {
      note("GPUs whose memory the known catalogue states otherwise, the CSV's is used",
           fmt::format("{} {:.4g} GiB not {:.4g}", gpu.model, gpu.memory_gib, like->memory_gib));
    }
    return place->second;
  }

  void take_figures(Machine& machine, const InstanceType& known) {
    InstanceType& type = machine.type;
    const auto take = [&](auto InstanceType::* figure, std::string_view key) {
      if (known.*figure == std::decay_t<decltype(known.*figure)>{}) return;
      const auto own = std::find_if(known.figure_sources.begin(), known.figure_sources.end(),
                                    [&](const auto& entry) { return entry.first == key; });
      type.*figure = known.*figure;
      type.figure_sources.emplace_back(key, copied(own == known.figure_sources.end() ? known.source : own->second));
    };
    if (type.vcpus == 0) take(&InstanceType::vcpus, "vcpus");
    if (type.memory_gib == 0) take(&InstanceType::memory_gib, "memory_gib");
    take(&InstanceType::network, "network_gbps");
    take(&InstanceType::network_burst, "network_burst_gbps");
    take(&InstanceType::fabric, "fabric");
    take(&InstanceType::fabric_rate, "fabric_gbps");
    take(&InstanceType::pcie, "pcie_gb_per_s");
    take(&InstanceType::nvlink, "nvlink_gb_per_s");
    take(&InstanceType::peer_to_peer, "peer_to_peer");
    type.quota = known.quota;
    for (const auto& limited : known.zones) {
      const auto at = machine.zones.find(limited.zone);
      if (at != machine.zones.end()) at->second.quota = limited.quota;
    }
  }

  const Catalog& known_;
  const std::string& file_;
  const SkypilotCloud& cloud_;
  std::vector<std::optional<std::size_t>> copied_;
  std::map<std::string, Machine, std::less<>> machines_{};
  std::map<std::string, Gpu> gpus_{};
  std::map<std::string_view, std::map<std::string, int>> remarks_{};
  std::optional<Error> error_{};
  Imported result_{};
};

Result<Source> skypilot_source(const ImportOptions& options) {
  const auto day = parse_date(options.date);
  if (!day) return unexpected(day.error());
  return Source{.id = "skypilot-" + options.cloud,
                .title = "SkyPilot catalogue, " + options.cloud,
                .url = "https://github.com/skypilot-org/skypilot-catalog",
                .day = *day,
                .date = options.date};
}

}  // namespace

Result<Imported> import_skypilot(std::string_view csv, const std::string& file, const Catalog& known,
                                 const ImportOptions& options) {
  if (const auto valid = valid_utf8(csv); valid < csv.size()) {
    return fail("{}:{}: not UTF-8 text", file,
                1 + std::count(csv.begin(), csv.begin() + static_cast<std::ptrdiff_t>(valid), '\n'));
  }
  const auto cloud = skypilot_cloud(options.cloud);
  if (!cloud) return unexpected(cloud.error());
  auto source = skypilot_source(options);
  if (!source) return unexpected(source.error());
  if (csv.find('\0') != csv.npos) return fail("{}: binary file, want SkyPilot's catalogue CSV", file);
  CsvRows rows(csv, file);
  std::vector<std::string> fields;
  auto more = rows.next(fields);
  if (!more) return unexpected(more.error());
  if (!*more) return fail("{}: the file is empty, want SkyPilot's catalogue CSV", file);
  const auto header = SkypilotHeader::of(fields, file);
  if (!header) return unexpected(header.error());
  SkypilotImport import(known, file, options, **cloud, std::move(*source));
  while ((more = rows.next(fields)) && *more) {
    const auto row = header->row(fields, file, rows.line());
    if (!row) return unexpected(row.error());
    import.add(*row);
  }
  if (!more) return unexpected(more.error());
  auto imported = std::move(import).finish();
  if (!imported || !imported->catalog.types.empty()) return imported;
  return fail("{}: no row became a machine{}{}", file, imported->notes.empty() ? "" : ": ",
              fmt::join(imported->notes, "; "));
}

}  // namespace mayfly
