#include "plan/quota.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.h"
#include "cloud/gpu_name.h"

namespace mayfly {
namespace {

/// AWS's families that several letters count against, by its user guide ("Running On-Demand Standard (A, C, D, H, I, M,
/// R, T, Z) instances", "G and VT").
constexpr std::string_view kStandard = "standard";
constexpr std::array<std::string_view, 9> kStandardLetters{"a", "c", "d", "h", "i", "m", "r", "t", "z"};
constexpr std::array<std::string_view, 3> kGraphics{"g", "gr", "vt"};
/// Families of AWS that a catalogue may have no type of.
constexpr std::array<std::string_view, 11> kOfAws{"standard", "f",  "g",  "inf", "p",          "x",
                                                  "trn",      "dl", "p5", "hpc", "high-memory"};

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

/// `*` stands for any characters. Where the rest does not match, the last star takes one more: those before it need not
/// be asked again, as what it may take is any end of what they could.
bool matches(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0;
  std::size_t star = pattern.npos, taken = 0;  // the last one, and where what follows it was last looked for
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p, ++t;
    } else if (star != pattern.npos) {
      p = star + 1;
      t = ++taken;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == pattern.npos;
}

/// "p5en.48xlarge" is of p, p5 and p5en.
bool is_of_family(std::string_view family, const InstanceType& type) {
  const std::string type_name = lower(type.name);
  if (family.find('*') != std::string_view::npos) return matches(family, type_name);
  if (type.cloud != "aws") return false;
  const auto not_letter = std::find_if_not(type_name.begin(), type_name.end(), is_letter);
  const auto not_digit = std::find_if_not(not_letter, type_name.end(), is_digit);
  const std::string_view letters(type_name.begin(), not_letter);
  const auto among = [&](const auto& list) { return std::find(list.begin(), list.end(), letters) != list.end(); };
  if (family == kStandard) return among(kStandardLetters);
  if (family == kGraphics.front()) return among(kGraphics);
  const std::string_view series = std::string_view(type_name).substr(0, type_name.find('.'));
  return family == letters || family == std::string_view(type_name.begin(), not_digit) || family == series;
}

/// How much a family's name tells; letters stand for less than anything else.
std::size_t detail(const FamilyQuota& quota) { return quota.family == kStandard ? 1 : quota.family.size(); }

/// Its beginning is a word and a colon, as no type's name is (n1-standard-8+V100:1).
bool is_of_sum(std::string_view item) {
  const auto colon = item.find(':');
  return colon != std::string_view::npos && colon < item.find('=') &&
         std::all_of(
             item.begin(), item.begin() + static_cast<std::ptrdiff_t>(colon),
             [](char c) { return is_letter(c) || c == '-'; });
}

Result<FamilyQuota> parse_family(std::string_view item) {
  const auto colon = item.find(':');
  const auto equals = item.find('=', colon);
  const std::string_view unit = trimmed(item.substr(0, colon));
  FamilyQuota quota{.market = unit.starts_with("spot-") ? Market::spot : Market::on_demand};
  const std::string_view bare = quota.market == Market::spot ? unit.substr(5) : unit;
  const int limit =
      equals == std::string_view::npos ? -1 : parse_integer(trimmed(item.substr(equals + 1))).value_or(-1);
  const auto family = equals == std::string_view::npos ? "" : trimmed(item.substr(colon + 1, equals - colon - 1));
  constexpr int kMost = 100'000'000;
  constexpr std::size_t kLongest = 64;
  const bool known = bare == "vcpus" || bare == "gpus";
  if (!known || family.empty() || family.size() > kLongest || limit < 0 || limit > kMost)
    return fail(
        "quota '{}': want vcpus:FAMILY=n, spot-vcpus:FAMILY=n, gpus:MODEL=n or spot-gpus:MODEL=n, for example "
        "vcpus:p=96,gpus:A100=8",
        item);
  quota.unit = bare == "gpus" ? FamilyQuota::Unit::gpus : FamilyQuota::Unit::vcpus;
  quota.family = lower(family);
  quota.limit = limit;
  return quota;
}

}  // namespace

std::string name(const FamilyQuota& quota) {
  return fmt::format("{}{}:{}", quota.market == Market::spot ? "spot-" : "",
                     quota.unit == FamilyQuota::Unit::vcpus ? "vcpus" : "gpus", quota.family);
}

double use_of(const FamilyQuota& quota, const InstanceType& type) {
  if (quota.unit == FamilyQuota::Unit::gpus)
    return type.gpu && is_gpu_called(type.gpu->model, quota.family) ? type.gpu_count : 0;
  return is_of_family(quota.family, type) ? type.vcpus : 0;
}

std::vector<std::size_t> quotas_on(const std::vector<FamilyQuota>& all, const InstanceType& type, Market market) {
  std::vector<std::size_t> found;
  for (const auto unit : {FamilyQuota::Unit::vcpus, FamilyQuota::Unit::gpus}) {
    std::size_t closest = all.size();
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].unit != unit || all[i].market != market || use_of(all[i], type) <= 0) continue;
      if (closest == all.size() || detail(all[i]) > detail(all[closest])) closest = i;
    }
    if (closest < all.size()) found.push_back(closest);
  }
  return found;
}

Result<Quotas> parse_quotas(std::string_view text) {
  Quotas quotas;
  std::vector<std::string_view> machines;
  for (const auto part : split(text, ',')) {
    const auto item = trimmed(part);
    if (!is_of_sum(item)) {
      machines.push_back(item);
      continue;
    }
    auto family = parse_family(item);
    if (!family) return unexpected(family.error());
    const auto same = std::find_if(quotas.families.begin(), quotas.families.end(),
                                   [&](const FamilyQuota& other) { return name(other) == name(*family); });
    if (same != quotas.families.end()) return fail("quota '{}' is given twice", name(*family));
    quotas.families.push_back(*std::move(family));
  }
  if (machines.empty()) return quotas;
  auto types = parse_machines(fmt::format("{}", fmt::join(machines, ",")));
  if (!types) return unexpected(types.error());
  quotas.types = *std::move(types);
  return quotas;
}

Result<void> known_families(const std::vector<FamilyQuota>& quotas, const Catalog& catalog) {
  for (const FamilyQuota& quota : quotas) {
    const bool some = std::any_of(catalog.types.begin(), catalog.types.end(),
                                  [&](const InstanceType& type) { return use_of(quota, type) > 0; });
    const bool vcpus = quota.unit == FamilyQuota::Unit::vcpus;
    if (some || (vcpus && std::find(kOfAws.begin(), kOfAws.end(), quota.family) != kOfAws.end())) continue;
    return fail("quota '{}': no type of catalogue '{}' {}", name(quota), catalog.name,
                vcpus ? "belongs to that family; want for example p, g, standard, p5 or n1-*" : "has that GPU");
  }
  return {};
}

}  // namespace mayfly
