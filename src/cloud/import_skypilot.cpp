#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include <type_traits>

#include "base/text.h"
#include "cloud/import.h"

namespace mayfly {
namespace {

/// The rows of a CSV text. Quoted fields may hold commas, line ends and doubled quotes; blank lines are skipped.
class CsvRows {
 public:
  CsvRows(std::string_view text, const std::string& file) : text_(text), file_(file) {
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
  }

  /// Line on which the row last read begins.
  int line() const { return row_line_; }

  /// False after the last row.
  Result<bool> next(std::vector<std::string>& fields) {
    while (at_ < text_.size() && (text_[at_] == '\n' || text_[at_] == '\r')) line_ += text_[at_++] == '\n' ? 1 : 0;
    if (at_ == text_.size()) return false;
    row_line_ = line_;
    fields.clear();
    while (true) {
      std::string& field = fields.emplace_back();
      const bool closed = !text_.substr(at_).starts_with('"') || unquote(field);
      if (!closed) return fail("{}:{}: a quote is not closed", file_, row_line_);
      const auto end = std::min(text_.find_first_of(",\n", at_), text_.size());
      field += text_.substr(at_, end - at_);
      at_ = std::min(end + 1, text_.size());
      if (end < text_.size() && text_[end] == ',') continue;
      if (field.ends_with('\r')) field.pop_back();
      if (end < text_.size()) ++line_;
      return true;
    }
  }

 private:
  bool unquote(std::string& field) {
    ++at_;
    while (true) {
      const auto quote = text_.find('"', at_);
      if (quote == std::string_view::npos) return false;
      const auto part = text_.substr(at_, quote - at_);
      line_ += static_cast<int>(std::count(part.begin(), part.end(), '\n'));
      field += part;
      at_ = quote + 1;
      if (!text_.substr(at_).starts_with('"')) return true;
      field += text_[at_++];
    }
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
  int line_ = 1;
  int row_line_ = 1;
};

enum Column { kType, kVcpus, kMemory, kAccelerator, kGpuCount, kGpuInfo, kRegion, kZone, kPrice, kSpotPrice, kColumns };
constexpr std::array<std::string_view, kColumns> kColumnNames = {
    "InstanceType", "vCPUs",  "MemoryGiB",        "AcceleratorName", "AcceleratorCount",
    "GpuInfo",      "Region", "AvailabilityZone", "Price",           "SpotPrice"};

struct Header {
  std::size_t width = 0;
  std::array<std::optional<std::size_t>, kColumns> at{};
};

// Real files write GpuInfo, SkyPilot's documentation GPUInfo.
bool same_word(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) { return lower(x) == lower(y); });
}

Result<Header> header_of(const std::vector<std::string>& names, const std::string& file) {
  Header header{.width = names.size()};
  for (std::size_t i = 0; i < names.size(); ++i) {
    for (std::size_t column = 0; column < kColumns; ++column) {
      if (!header.at[column] && same_word(trimmed(names[i]), kColumnNames[column])) header.at[column] = i;
    }
  }
  for (const Column column : {kType, kPrice}) {
    if (header.at[column]) continue;
    return fail("{}: no column '{}'; columns seen: {}", file, kColumnNames[column], fmt::join(names, ", "));
  }
  return header;
}

/// What every row of a type says again.
struct Figures {
  std::optional<double> vcpus{};
  std::optional<double> memory_gib{};
  std::optional<double> gpu_count{};
  std::optional<double> gpu_memory_mib{};
};

/// One row, checked. Views live as long as the fields they are read from.
struct Row {
  std::string_view type{};
  std::string_view accelerator{};
  std::string_view region{};
  std::string_view zone{};
  Figures figures{};
  std::optional<double> price{};
  std::optional<double> spot_price{};
};

/// What a catalogue can hold.
constexpr double kLargestFigure = 1e18;

/// 16384 of "{'Gpus': [{..., 'MemoryInfo': {'SizeInMiB': 16384}}], ...}"; nothing of Azure's "V100".
std::string_view size_in_mib(std::string_view info) {
  constexpr std::string_view kKey = "SizeInMiB";
  const auto key = info.find(kKey);
  if (key == std::string_view::npos) return {};
  const auto begin = std::min(info.find_first_not_of("'\": ", key + kKey.size()), info.size());
  return trimmed(info.substr(begin, info.find_first_of(",}", begin) - begin));
}

Result<Row> row_of(const Header& header, const std::vector<std::string>& fields, const std::string& file, int line) {
  if (fields.size() != header.width) {
    return fail("{}:{}: {} columns, want {} as in the header", file, line, fields.size(), header.width);
  }
  std::optional<Error> error;
  const auto text = [&](Column column) {
    return header.at[column] ? trimmed(fields[*header.at[column]]) : std::string_view();
  };
  const auto reject = [&](Column column, std::string_view seen, std::string_view wanted) {
    if (error) return;
    error = Error{fmt::format("{}:{}: column '{}': '{}', want {}", file, line, kColumnNames[column], seen, wanted)};
  };
  const auto number = [&](Column column, std::string_view seen, Range range) -> std::optional<double> {
    if (seen.empty()) return {};
    const auto value = parse_number(seen);
    if (value && *value <= kLargestFigure && (range == Range::positive ? *value > 0 : *value >= 0)) return value;
    reject(column, seen, range == Range::positive ? "a number above 0 and up to 10^18" : "a number from 0 to 10^18");
    return {};
  };
  Row row{.type = text(kType), .accelerator = text(kAccelerator), .region = text(kRegion), .zone = text(kZone)};
  if (row.type.empty() && row.accelerator.empty()) reject(kType, row.type, "a name");
  row.figures = {.vcpus = number(kVcpus, text(kVcpus), Range::positive),
                 .memory_gib = number(kMemory, text(kMemory), Range::positive),
                 .gpu_count = number(kGpuCount, text(kGpuCount), Range::non_negative),
                 .gpu_memory_mib = number(kGpuInfo, size_in_mib(text(kGpuInfo)), Range::positive)};
  row.price = number(kPrice, text(kPrice), Range::non_negative);
  row.spot_price = number(kSpotPrice, text(kSpotPrice), Range::non_negative);
  if (error) return unexpected(*error);
  return row;
}

/// One type on its way, from all its rows.
struct Machine {
  InstanceType type{};
  std::string accelerator{};
  Figures figures{};
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

/// SkyPilot's "V100" may be a catalogue's "V100-16GB".
bool is_sized_name(std::string_view model, std::string_view accelerator) {
  if (!model.starts_with(accelerator) || !model.ends_with("GB")) return false;
  const auto size = model.substr(accelerator.size());
  return size.size() > 3 && size[0] == '-' && size.find_first_not_of("0123456789", 1) == size.size() - 2;
}

/// Clouds state what is usable: AWS gives an L4 of 24 GB 22888 MiB, 7 % less. Sizes of one model differ by far more.
bool same_memory(double a_gib, double b_gib) { return std::abs(a_gib - b_gib) <= 0.1 * std::max(a_gib, b_gib); }

class SkypilotImport {
 public:
  SkypilotImport(const Catalog& known, const ImportOptions& options, Source source)
      : known_(known), cloud_(options.cloud), copied_(known.sources.size()) {
    result_.catalog.name = options.name;
    result_.catalog.sources.push_back(std::move(source));
  }

  void add(const Row& row) {
    if (row.type.empty()) return note("accelerator-only rows, priced apart from the VM, not imported", row.accelerator);
    auto at = machines_.find(row.type);
    if (at == machines_.end()) {
      Machine machine{.accelerator = std::string(row.accelerator), .figures = row.figures};
      at = machines_.emplace(row.type, std::move(machine)).first;
    }
    auto& [type, accelerator, figures, zones] = at->second;
    if (keep_cheaper(type.on_demand, row.price)) type.region = row.region;
    if (keep_cheaper(type.spot, row.spot_price) && !type.on_demand) type.region = row.region;
    if (row.zone.empty() || (!row.price && !row.spot_price)) return;
    ZonePrice& zone = zones[std::string(row.zone)];
    keep_cheaper(zone.on_demand, row.price);
    keep_cheaper(zone.spot, row.spot_price);
  }

  Imported finish() && {
    for (auto& [name, machine] : machines_) {
      const InstanceType* known = known_.find(name);
      if (known != nullptr && known->cloud != cloud_) known = nullptr;
      if (complete(name, machine, known)) result_.catalog.types.push_back(std::move(machine.type));
    }
    for (auto& [model, gpu] : gpus_) {
      if (!gpu.tflops_fp32 && !gpu.tflops_fp16) note("GPUs without TFLOPS, the known catalogue has none", model);
      result_.catalog.gpus.push_back(gpu);
    }
    for (const auto& [what, counts] : remarks_) result_.notes.push_back(count_note(what, counts));
    return std::move(result_);
  }

 private:
  /// `what`, a literal, will precede the count and the names.
  void note(std::string_view what, std::string_view name) { ++remarks_[what][std::string(name)]; }

  /// The new catalogue's index of a source of `known`.
  std::size_t copied(std::size_t source) {
    if (!copied_[source]) copied_[source] = add_source(result_.catalog.sources, known_.sources[source]);
    return *copied_[source];
  }

  /// False, with a note, where too little is known of the machine to import it.
  bool complete(const std::string& name, Machine& machine, const InstanceType* known) {
    InstanceType& type = machine.type;
    type.name = name;
    type.cloud = cloud_;
    type.vcpus = machine.figures.vcpus.value_or(0);
    type.memory_gib = machine.figures.memory_gib.value_or(0);
    const auto skip = [&](std::string_view why) { return note(why, name), false; };
    if (!type.on_demand && !type.spot) return skip("types skipped, no row has a price");
    const bool sized = known || (type.vcpus > 0 && type.memory_gib > 0);
    if (!sized) return skip("types skipped, vCPUs or memory are not stated");
    if (!set_gpu(type, machine, known)) return false;
    if (known) take_figures(machine, *known);
    for (const auto& [zone, prices] : machine.zones) type.zones.emplace_back(prices).zone = zone;
    if (!type.usable_network()) note("types without a network rate, the known catalogue has none", name);
    return true;
  }

  /// False, with a note, where the type's GPUs are not known well enough to import it.
  bool set_gpu(InstanceType& type, const Machine& machine, const InstanceType* known) {
    const std::string& name = machine.accelerator;
    const auto skip = [&](std::string_view why, std::string_view what) { return note(why, what), false; };
    const int known_count = known && known->gpu ? known->gpu_count : 0;
    if (name.empty() && known_count == 0 && !(cloud_ == "gcp" && is_gcp_gpu_family(type.name))) return true;
    if (name.empty()) return skip("types skipped, their rows do not name, nor surely price, their GPUs", type.name);
    if (!is_gpu(name)) return skip("types skipped, their accelerator is not a GPU", name);
    const double count = machine.figures.gpu_count.value_or(known_count);
    const bool whole = count >= 1 && count <= 1e6 && count == std::floor(count) && !is_part_of_a10(type.name);
    if (!whole) return skip("types skipped, they have no whole number of GPUs", name);
    const Gpu* like = known_gpu(machine, known);
    if (!like && !machine.figures.gpu_memory_mib) {
      return skip("types skipped, the GPU's memory is stated neither here nor in the known catalogue", name);
    }
    type.gpu = placed_gpu(machine, like);
    type.gpu_count = static_cast<int>(count);
    if (known_count != 0 && known_count != type.gpu_count) {
      note("types whose number of GPUs the known catalogue states otherwise, the CSV's is used",
           fmt::format("{} {} not {}", type.name, type.gpu_count, known_count));
    }
    return true;
  }

  /// The GPU of `known` that the machine's accelerator is; none where several could be meant.
  const Gpu* known_gpu(const Machine& machine, const InstanceType* known) const {
    const auto& name = machine.accelerator;
    const auto mib = machine.figures.gpu_memory_mib;
    const auto fits = [&](const Gpu& gpu) { return !mib || same_memory(gpu.memory_gib, *mib / 1024); };
    if (known && known->gpu && fits(*known->gpu)) {
      if (known->gpu->model == name || known->gpu->model.starts_with(name + "-")) return &*known->gpu;
    }
    const Gpu* found = nullptr;
    for (const auto& gpu : known_.gpus) {
      if (!fits(gpu)) continue;
      if (gpu.model == name) return &gpu;
      if (!is_sized_name(gpu.model, name)) continue;
      if (found != nullptr) return nullptr;
      found = &gpu;
    }
    return found;
  }

  Gpu placed_gpu(const Machine& machine, const Gpu* like) {
    Gpu gpu = like ? *like : Gpu{.model = machine.accelerator};
    if (like) gpu.source = copied(like->source);
    if (const auto mib = machine.figures.gpu_memory_mib) gpu.memory_gib = *mib / 1024;
    auto [place, fresh] = gpus_.try_emplace(gpu.model, gpu);
    if (!fresh && !same_memory(place->second.memory_gib, gpu.memory_gib)) {
      gpu.model += fmt::format("-{:.4g}GB", gpu.memory_gib);
      place = gpus_.try_emplace(gpu.model, gpu).first;
    }
    if (fresh && like && gpu.memory_gib != like->memory_gib) {
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
    take(&InstanceType::pcie, "pcie_gb_per_s");
    take(&InstanceType::nvlink, "nvlink_gb_per_s");
    type.quota = known.quota;
    for (const auto& limited : known.zones) {
      const auto at = machine.zones.find(limited.zone);
      if (at != machine.zones.end()) at->second.quota = limited.quota;
    }
  }

  const Catalog& known_;
  std::string cloud_;
  std::vector<std::optional<std::size_t>> copied_;
  std::map<std::string, Machine, std::less<>> machines_{};
  std::map<std::string, Gpu> gpus_{};
  std::map<std::string_view, std::map<std::string, int>> remarks_{};
  Imported result_{};
};

Result<Source> skypilot_source(const ImportOptions& options) {
  if (options.cloud != "aws" && options.cloud != "gcp" && options.cloud != "azure") {
    return fail("cloud '{}': want aws, gcp or azure", options.cloud);
  }
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
  auto source = skypilot_source(options);
  if (!source) return unexpected(source.error());
  if (csv.find('\0') != csv.npos) return fail("{}: binary file, want SkyPilot's catalogue CSV", file);
  CsvRows rows(csv, file);
  std::vector<std::string> fields;
  auto more = rows.next(fields);
  if (!more) return unexpected(more.error());
  if (!*more) return fail("{}: the file is empty, want SkyPilot's catalogue CSV", file);
  const auto header = header_of(fields, file);
  if (!header) return unexpected(header.error());
  SkypilotImport import(known, options, std::move(*source));
  while ((more = rows.next(fields)) && *more) {
    const auto row = row_of(*header, fields, file, rows.line());
    if (!row) return unexpected(row.error());
    import.add(*row);
  }
  if (!more) return unexpected(more.error());
  auto imported = std::move(import).finish();
  if (!imported.catalog.types.empty()) return imported;
  return fail("{}: no row became a machine{}{}", file, imported.notes.empty() ? "" : ": ",
              fmt::join(imported.notes, "; "));
}

}  // namespace mayfly
