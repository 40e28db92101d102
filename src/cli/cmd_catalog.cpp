#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>

#include "base/file.h"
#include "base/how_many.h"
#include "base/table.h"
#include "base/text.h"
#include "cli/command.h"
#include "cloud/ages.h"
#include "cloud/import.h"
#include "cloud/skypilot_cloud.h"

namespace mayfly::cli {
namespace {

struct CatalogFlags {
  std::string catalog{};
  std::string cloud{};
  std::string gpu{};
  std::string sort = "name";
  int least_gpus = 0;
  std::string name{};
  std::string file{};
  std::string from{};
  std::string output{};
  std::string date{};
  bool json = false;
};

std::string dash(bool known, const std::string& text) { return known ? text : "-"; }

Json price_json(const Catalog& catalog, const std::optional<Price>& price) {
  if (!price) return {};
  const Source& source = catalog.sources[price->source];
  return {{"usd_per_hour", price->rate.value}, {"date", source.date}, {"source", source.title}};
}

Json type_json(const Catalog& catalog, const InstanceType& type) {
  Json json{{"type", type.name}, {"cloud", type.cloud}, {"region", type.region}};
  if (type.gpu) {
    json["gpu"] = type.gpu->model;
    json["gpu_count"] = type.gpu_count;
    json["gpu_memory_gib"] = type.gpu->memory_gib;
    if (type.gpu->tflops_fp32) json["tflops_fp32"] = *type.gpu->tflops_fp32;
    if (type.gpu->tflops_tf32) json["tflops_tf32"] = *type.gpu->tflops_tf32;
    if (type.gpu->tflops_fp16) json["tflops_fp16"] = *type.gpu->tflops_fp16;
    if (type.gpu->tflops_fp8) json["tflops_fp8"] = *type.gpu->tflops_fp8;
    if (type.gpu->memory_rate) json["gpu_memory_mb_per_s"] = in_megabytes(*type.gpu->memory_rate);
  }
  json["vcpus"] = type.vcpus;
  json["memory_gib"] = type.memory_gib;
  if (type.network) json["network_mb_per_s"] = in_megabytes(*type.network);
  if (type.network_burst) json["network_burst_mb_per_s"] = in_megabytes(*type.network_burst);
  if (type.pcie) json["pcie_mb_per_s"] = in_megabytes(*type.pcie);
  if (type.fabric) json["fabric"] = name(*type.fabric);
  if (type.fabric_rate) json["fabric_mb_per_s"] = in_megabytes(*type.fabric_rate);
  if (type.nvlink) json["nvlink_mb_per_s"] = in_megabytes(*type.nvlink);
  json["on_demand"] = price_json(catalog, type.on_demand);
  json["spot"] = price_json(catalog, type.spot);
  json["source"] = catalog.sources[type.source].title;
  if (!type.retired.empty()) json["retired"] = type.retired;
  if (type.quota) json["quota"] = *type.quota;
  if (!type.zones.empty()) json["zones"] = Json::array();
  for (const ZonePrice& zone : type.zones) {
    json["zones"].push_back({{"zone", zone.zone},
                             {"on_demand", price_json(catalog, zone.on_demand)},
                             {"spot", price_json(catalog, zone.spot)}});
  }
  return json;
}

double sort_key(const InstanceType& type, const std::string& by) {
  // Dearest unknown last; speeds in falling order.
  if (by == "price") return type.on_demand ? type.on_demand->rate.value : INFINITY;
  if (by == "spot") return type.spot ? type.spot->rate.value : INFINITY;
  if (by == "tflops") return type.gpu && type.gpu->tflops_fp32 ? -*type.gpu->tflops_fp32 * type.gpu_count : INFINITY;
  if (by == "network") return type.usable_network() ? -type.usable_network()->value : INFINITY;
  return 0;
}

using Types = std::vector<const InstanceType*>;
using Functions = std::vector<const FunctionPlatform*>;

bool is_asked_for(const InstanceType& type, const CatalogFlags& options) {
  return (options.cloud.empty() || type.cloud == options.cloud) &&
         (options.gpu.empty() || (type.gpu && type.gpu->model.starts_with(options.gpu))) &&
         type.gpu_count >= options.least_gpus;
}

Types types_of(const Catalog& catalog, const CatalogFlags& options) {
  Types shown;
  for (const InstanceType& type : catalog.types) {
    if (is_asked_for(type, options)) shown.push_back(&type);
  }
  std::stable_sort(shown.begin(), shown.end(), [&](const auto* a, const auto* b) {
    return sort_key(*a, options.sort) < sort_key(*b, options.sort);
  });
  return shown;
}

Functions functions_of(const Catalog& catalog, const CatalogFlags& options) {
  Functions shown;
  for (const FunctionPlatform& f : catalog.functions) {
    if (options.cloud.empty() || f.cloud == options.cloud) shown.push_back(&f);
  }
  return shown;
}

Json list_json(const Catalog& catalog, const Types& types, const Functions& functions) {
  Json json{{"catalog", catalog.name}, {"types", Json::array()}, {"functions", Json::array()}};
  for (const auto* type : types) json["types"].push_back(type_json(catalog, *type));
  for (const auto* f : functions) {
    json["functions"].push_back({{"name", f->name},
                                 {"cloud", f->cloud},
                                 {"memory_mib_max", f->memory_mib_max},
                                 {"timeout_s", f->timeout.count()},
                                 {"usd_per_gib_s", f->usd_per_gib_s}});
  }
  return json;
}

/// "2022-07-07, spot 2023-01-01", or one day where the prices are of the same.
std::string priced_text(const Catalog& catalog, const InstanceType& type) {
  const auto date = [&](const std::optional<Price>& price) {
    return price ? catalog.sources[price->source].date : std::string();
  };
  const auto on_demand = date(type.on_demand);
  const auto spot = date(type.spot);
  if (on_demand.empty() || spot.empty() || on_demand == spot)
    return on_demand.empty() ? dash(!spot.empty(), spot) : on_demand;
  return fmt::format("{}, spot {}", on_demand, spot);
}

/// The same, and since when the type is not to be had.
std::string offered_text(const Catalog& catalog, const InstanceType& type) {
  const auto priced = priced_text(catalog, type);
  return type.retired.empty() ? priced : fmt::format("{}; retired {}", priced, type.retired);
}

Table type_table(const Catalog& catalog, const Types& types) {
  Table table({"TYPE", "CLOUD", "GPU", ">GPUS", ">GPU GiB", ">TFLOPS", ">VCPU", ">MEM GiB", ">NET Gbit/s", ">ON-DEMAND",
               ">SPOT", "PRICED"});
  for (const auto* type : types) {
    const auto& gpu = type->gpu;
    const auto network = type->usable_network();
    table.add({type->name, type->cloud, gpu ? gpu->model : "-",
               dash(gpu.has_value(), fmt::format("{}", type->gpu_count)),
               gpu ? fmt::format("{:g}", gpu->memory_gib) : "-",
               gpu && gpu->tflops_fp32 ? fmt::format("{:g}", *gpu->tflops_fp32) : "-", fmt::format("{:g}", type->vcpus),
               fmt::format("{:g}", type->memory_gib),
               network ? fmt::format("{}{:g}", type->network ? "" : "<=", network->value * 8 / 1e9) : "-",
               type->on_demand ? fmt::format("{:.4f}", type->on_demand->rate.value) : "-",
               type->spot ? fmt::format("{:.4f}", type->spot->rate.value) : "-", offered_text(catalog, *type)});
  }
  return table;
}

Table function_table(const Catalog& catalog, const Functions& functions) {
  Table table({"FUNCTIONS", "CLOUD", ">MOST MiB", ">TIME-OUT", ">USD/GiB s", "OF"});
  for (const auto* f : functions) {
    table.add({f->name, f->cloud, fmt::format("{}", f->memory_mib_max), format_duration(f->timeout),
               fmt::format("{:.8f}", f->usd_per_gib_s), catalog.sources[f->source].date});
  }
  return table;
}

void note_ages(const Catalog& catalog, const Types& types) {
  std::vector<std::string> names;
  for (const auto* type : types) names.push_back(type->name);
  for (const Market market : {Market::on_demand, Market::spot}) {
    if (const auto ages = price_ages(catalog, names, market)) note(*ages);
  }
}

int list(const CatalogFlags& options) {
  const auto catalog = read_catalogs(options.catalog);
  if (!catalog) return bad_input(catalog.error());
  const auto types = types_of(*catalog, options);
  const auto functions = functions_of(*catalog, options);
  if (options.json) {
    print_json(list_json(*catalog, types, functions));
    return kDone;
  }
  fmt::print("{}", type_table(*catalog, types).text());
  const bool of_gpus = !options.gpu.empty() || options.least_gpus > 0;
  if (!functions.empty() && !of_gpus) fmt::print("\n{}", function_table(*catalog, functions).text());
  if (types.empty()) {
    const auto such = [&](const InstanceType& type) { return is_asked_for(type, options); };
    note("no type matches" + shipped_elsewhere(*catalog, such));
  }
  note_ages(*catalog, types);
  return kDone;
}

int show(const CatalogFlags& options) {
  const auto catalog = read_catalogs(options.catalog);
  if (!catalog) return bad_input(catalog.error());
  if (const auto* f = catalog->find_function(options.name)) {
    const Source& source = catalog->sources[f->source];
    const Json json{{"name", f->name},
                    {"cloud", f->cloud},
                    {"memory_mib_min", f->memory_mib_min},
                    {"memory_mib_max", f->memory_mib_max},
                    {"memory_mib_step", f->memory_mib_step},
                    {"timeout_s", f->timeout.count()},
                    {"usd_per_gib_s", f->usd_per_gib_s},
                    {"usd_per_request", f->usd_per_request},
                    {"source", source.title},
                    {"date", source.date}};
    print_json(json);
    return kDone;
  }
  const auto type = find_type(*catalog, options.name);
  if (!type) return bad_input(type.error());
  const Json json = type_json(*catalog, **type);
  if (options.json) {
    print_json(json);
    return kDone;
  }
  Table table({"", "", ""});
  const auto source_of = [&](const std::string& figure) {
    for (const auto& [key, source] : (*type)->figure_sources) {
      if (key.substr(0, key.find('_')) == figure.substr(0, figure.find('_'))) return source;
    }
    return (*type)->source;
  };
  for (const auto& [key, value] : json.items()) {
    if (key == "zones" || key == "source" || value.is_null()) continue;
    if (value.is_object()) {
      table.add({key, fmt::format("{} USD/h", value["usd_per_hour"].dump()),
                 fmt::format("{}, {}", value["date"].get<std::string>(), value["source"].get<std::string>())});
      continue;
    }
    const std::size_t at =
        key.starts_with("gpu_memory") || key.starts_with("tflops") ? (*type)->gpu->source : source_of(key);
    const Source& source = catalog->sources[at];
    table.add({key, value.is_string() ? value.get<std::string>() : value.dump(),
               fmt::format("{}, {}{}", source.date, source.title, source.recalled ? " (not re-read)" : "")});
  }
  fmt::print("{}", table.text().substr(1));
  if (json.contains("zones")) {
    Table zones({"ZONE", ">ON-DEMAND", ">SPOT"});
    for (const ZonePrice& zone : (*type)->zones) {
      zones.add({zone.zone, zone.on_demand ? fmt::format("{:.4f}", zone.on_demand->rate.value) : "-",
                 zone.spot ? fmt::format("{:.4f}", zone.spot->rate.value) : "-"});
    }
    fmt::print("\n{}", zones.text());
  }
  return kDone;
}

std::string today() {
  const auto now = std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now());
  const std::chrono::year_month_day day{now};
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(day.year()), static_cast<unsigned>(day.month()),
                     static_cast<unsigned>(day.day()));
}

int import(const CatalogFlags& options) {
  const auto offers = read_catalogs(options.catalog);
  if (!offers) return bad_input(offers.error());
  const auto gpus = shipped_gpus();
  if (!gpus) return bad_input(gpus.error());
  Catalog known = merged(*gpus, *offers);
  known.name = offers->name;
  const auto text = load_text(options.file);
  if (!text) return bad_input(text.error());
  const bool history = options.from == "aws-spot" || (options.from.empty() && options.file.ends_with(".json"));
  const auto date = options.date.empty() ? today() : options.date;
  const auto imported =
      history
          ? import_spot_history(*text, options.file, known)
          : import_skypilot(*text, options.file, known,
                            {.name = fmt::format("skypilot-{}", options.cloud), .date = date, .cloud = options.cloud});
  if (!imported) return bad_input(imported.error());
  const std::string yaml = catalog_yaml(imported->catalog);
  if (const auto saved = save_text(options.output, yaml); !saved) return bad_input(saved.error());
  for (const auto& text_note : imported->notes) note(text_note);
  const Json summary{
      {"catalog", options.output}, {"types", imported->catalog.types.size()}, {"notes", imported->notes}};
  if (options.json) {
    print_json(summary);
  } else {
    fmt::print("{}: {}\n", options.output, how_many(std::ssize(imported->catalog.types), "type"));
  }
  return kDone;
}

}  // namespace

void add_catalog(CLI::App& program, int& code) {
  auto options = std::make_shared<CatalogFlags>();
  auto* verb = program.add_subcommand("catalog", "what can be rented: list, show, import");
  verb->require_subcommand(1);
  const auto common = [&](CLI::App* action) {
    action->add_option("--catalog", options->catalog,
                       "catalogue files or names, separated by commas (default: the shipped one)");
    action->add_flag("--json", options->json, "print one JSON document");
  };
  auto* lister = verb->add_subcommand("list", "instance types and functions");
  lister->add_option("--cloud", options->cloud, "of this cloud: aws, lambda, ...");
  lister->add_option("--gpu", options->gpu, "GPU model, or how its name begins: V100");
  lister->add_option("--min-gpus", options->least_gpus, "at least this many GPUs")->check(CLI::NonNegativeNumber);
  lister->add_option("--sort", options->sort, "name, price, spot, tflops or network")
      ->capture_default_str()
      ->check(CLI::IsMember({"name", "price", "spot", "tflops", "network"}));
  common(lister);
  lister->callback([options, &code] { code = list(*options); });
  auto* shower = verb->add_subcommand("show", "everything known of one type, with sources and dates");
  shower->add_option("type", options->name, "instance type or function platform")->required();
  common(shower);
  shower->callback([options, &code] { code = show(*options); });
  auto* importer =
      verb->add_subcommand("import", "a SkyPilot catalogue CSV, or the JSON of 'aws ec2 describe-spot-price-history'");
  importer->add_option("file", options->file, "the file to import")->required();
  importer->add_option("--from", options->from, "skypilot or aws-spot (default: by the file's ending)")
      ->check(CLI::IsMember({"skypilot", "aws-spot"}));
  importer->add_option("--cloud", options->cloud, "whose SkyPilot CSV it is: " + skypilot_cloud_names())
      ->default_str("aws")
      ->check([](const std::string& name) {
        const auto cloud = skypilot_cloud(name);
        return cloud ? std::string() : cloud.error().message;
      });
  importer->add_option("--date", options->date, "day of the prices, YYYY-MM-DD (default: today)");
  importer->add_option("-o,--output", options->output, "catalogue to write")->required();
  common(importer);
  importer->callback([options, &code] {
    if (options->cloud.empty()) options->cloud = "aws";
    code = import(*options);
  });
}

}  // namespace mayfly::cli
