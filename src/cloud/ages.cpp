#include "cloud/ages.h"

#include <cmath>

#include "base/result.h"

namespace mayfly {

namespace {

constexpr int kYear = 365;

std::string counted(double count, std::string_view unit) {
  return fmt::format("{:g} {}{}", count, unit, count == 1 ? "" : "s");
}

}  // namespace

std::string age_text(int days) {
  if (days < 61) return counted(days, "day");
  if (days < kYear) return counted(std::floor(days * 12.0 / kYear), "month");
  return counted(std::round(days * 10.0 / kYear) / 10, "year");
}

std::optional<std::string> price_ages(const Catalog& catalog, const std::vector<std::string>& types, Market market) {
  struct Dated {
    const InstanceType* type = nullptr;
    const Source* source = nullptr;
  };
  Dated oldest;
  Dated newest;
  for (const auto& type_name : types) {
    const InstanceType* type = catalog.find(type_name);
    if (type == nullptr || !type->price(market)) continue;
    const Source& source = catalog.sources[type->price(market)->source];
    if (oldest.type == nullptr || source.day < oldest.source->day) oldest = {type, &source};
    if (newest.type == nullptr || source.day > newest.source->day) newest = {type, &source};
  }
  if (oldest.type == nullptr || newest.source->day - oldest.source->day <= kYear) return {};
  return fmt::format("{} prices of different times are compared: that of {} is of {}, that of {} of {}, {} later",
                     name(market), oldest.type->name, oldest.source->date, newest.type->name, newest.source->date,
                     age_text(newest.source->day - oldest.source->day));
}

}  // namespace mayfly
