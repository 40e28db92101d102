#include "cloud/tariffs.h"

#include <algorithm>
#include <cmath>

#include "base/file.h"
#include "cloud/catalog.h"

namespace mayfly {
namespace {

using Sources = std::vector<Source>;

std::string named_source(Section& entry, const Sources& sources, std::string_view key = "source") {
  const std::string id = entry.text(key);
  const auto named = [&](const Source& source) { return source.id == id; };
  if (entry.ok() && std::none_of(sources.begin(), sources.end(), named))
    entry.reject(key, fmt::format("source '{}' is not under 'sources'", id));
  return id;
}

std::optional<GigabyteRate> read_rate(Section& tariff, std::string_view key, const Sources& sources) {
  auto entry = tariff.maybe_section(key);
  if (!entry) return {};
  GigabyteRate rate{.rate = {entry->number(key == "storage" ? "usd_per_gb_month" : "usd_per_gb", Range::non_negative)},
                    .free_gb = entry->maybe_number("free_gb", Range::non_negative).value_or(0)};
  rate.source = named_source(*entry, sources);
  if (rate.free_gb > 0) named_source(*entry, sources, "free_source");
  entry->finish();
  return rate;
}

std::optional<BilledTime> read_billed_time(Section& tariff, const Sources& sources) {
  auto entry = tariff.maybe_section("machines");
  if (!entry) return {};
  BilledTime time{.minimum = Seconds(entry->number("minimum_s", Range::non_negative)),
                  .step = Seconds(entry->number("step_s", Range::positive)),
                  .source = named_source(*entry, sources)};
  if (const Value* types = entry->raw("types")) {
    auto named = entry->section("types");
    for (const auto& [prefix, value] : types->entries)
      time.types.emplace_back(prefix, Seconds(named.number(prefix, Range::non_negative)));
  }
  entry->finish();
  return time;
}

Tariff read_tariff(Section& entry, const Sources& sources) {
  Tariff tariff;
  if (auto gb = entry.maybe_section("gb_bytes")) {
    tariff.gb_bytes = gb->number("value", Range::positive);
    named_source(*gb, sources);
    gb->finish();
  }
  tariff.machines = read_billed_time(entry, sources);
  tariff.internet = read_rate(entry, "internet", sources);
  tariff.between_regions = read_rate(entry, "between_regions", sources);
  tariff.between_continents = read_rate(entry, "between_continents", sources);
  tariff.between_zones = read_rate(entry, "between_zones", sources);
  tariff.within_region = read_rate(entry, "within_region", sources);
  tariff.storage = read_rate(entry, "storage", sources);
  tariff.continent = entry.maybe_text("continent").value_or("");
  return tariff;
}

Tariffs read_tariffs(Section& root) {
  Tariffs tariffs;
  for (auto& [id, entry] : root.section("sources").each()) tariffs.sources.push_back(read_source(id, entry));
  for (auto& [cloud, entry] : root.section("clouds").each()) {
    Tariffs::OfCloud of{.cloud = cloud, .tariff = read_tariff(entry, tariffs.sources)};
    if (auto regions = entry.maybe_section("regions")) {
      for (auto& [region, own] : regions->each()) {
        of.regions.emplace_back(region, read_tariff(own, tariffs.sources));
        own.finish();
      }
    }
    entry.finish();
    tariffs.clouds.push_back(std::move(of));
  }
  return tariffs;
}

/// How much of the region's name the entry says; 0: it is of another.
std::size_t match(std::string_view entry, std::string_view region) {
  if (entry == region) return entry.size() + 1;
  if (!entry.ends_with('*')) return 0;
  entry.remove_suffix(1);
  return region.starts_with(entry) ? entry.size() : 0;
}

void lay_over(Tariff& tariff, const Tariff& own) {
  const auto lay = [](auto& under, const auto& over) {
    if (over) under = over;
  };
  lay(tariff.gb_bytes, own.gb_bytes);
  lay(tariff.machines, own.machines);
  lay(tariff.internet, own.internet);
  lay(tariff.between_regions, own.between_regions);
  lay(tariff.between_continents, own.between_continents);
  lay(tariff.between_zones, own.between_zones);
  lay(tariff.within_region, own.within_region);
  lay(tariff.storage, own.storage);
  if (!own.continent.empty()) tariff.continent = own.continent;
}

}  // namespace

Seconds BilledTime::of(std::string_view type, Seconds held) const {
  Seconds least = minimum;
  for (const auto& [prefix, longer] : types) {
    if (type.starts_with(prefix)) least = longer;
  }
  // To the nanosecond: a whole number of steps is not one more for the rounding of a sum.
  const double steps = std::ceil(held / step - 1e-9 / step.count());
  return std::max({least, held, steps * step});
}

Tariff Tariffs::of(const Site& place) const {
  const auto cloud =
      std::find_if(clouds.begin(), clouds.end(), [&](const OfCloud& one) { return one.cloud == place.cloud; });
  if (cloud == clouds.end()) return {};
  std::vector<std::pair<std::size_t, const Tariff*>> own;
  for (const auto& [entry, tariff] : cloud->regions) {
    if (const auto said = match(entry, place.region); said > 0) own.emplace_back(said, &tariff);
  }
  std::stable_sort(own.begin(), own.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  Tariff tariff = cloud->tariff;
  for (const auto& [said, over] : own) lay_over(tariff, *over);
  return tariff;
}

std::optional<GigabyteRate> Tariffs::transfer(const Site& from, const Site& to) const {
  if (from.cloud.empty() || to.cloud.empty()) return {};
  if (from.cloud == kOwnSite) return GigabyteRate{};  // clouds do not charge for what comes in
  const Tariff here = of(from);
  if (from.cloud != to.cloud) return here.internet;
  if (from.region.empty() || to.region.empty()) return {};
  if (from.region == to.region) return here.within_region;
  const Tariff there = of(to);
  const bool near = !here.continent.empty() && here.continent == there.continent;
  if (near || !here.between_continents) return here.between_regions;
  return here.between_continents;
}

double gigabytes(const Tariff& tariff, Bytes size) { return size.value / tariff.gb_bytes.value_or(1e9); }

Result<Tariffs> parse_tariffs(std::string_view text, const std::string& file) {
  return read_document(text, file, "mayfly-tariffs/1", read_tariffs);
}

Result<Tariffs> load_tariffs(const std::filesystem::path& path) {
  const auto text = load_text(path);
  if (!text) return unexpected(text.error());
  return parse_tariffs(*text, path.string());
}

}  // namespace mayfly
