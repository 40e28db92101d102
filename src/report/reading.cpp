#include "report/reading.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

namespace mayfly {
namespace {

struct Lot {
  std::string what{};
  double count = 0;
};

/// Lines of the same words are put together.
std::string joined(const std::vector<Lot>& lots) {
  std::vector<Lot> sums;
  for (const Lot& lot : lots) {
    const auto same = std::find_if(sums.begin(), sums.end(), [&](const Lot& sum) { return sum.what == lot.what; });
    if (same == sums.end())
      sums.push_back(lot);
    else
      same->count += lot.count;
  }
  std::string text;
  for (const Lot& sum : sums) text += fmt::format("{}{} x {}", text.empty() ? "" : " + ", sum.count, sum.what);
  return text;
}

std::string lots_text(const Json& lines, bool zones) {
  std::vector<Lot> lots;
  if (!lines.is_array()) return {};
  for (const Json& line : lines) {
    const Fields fields(line);
    const auto count = finite(fields, "n");
    if (!count) continue;
    std::string what = fields.text("type");
    for (const char* key : {"market", "zone"}) {
      const std::string word = fields.text(key);
      if (!word.empty() && (zones || std::string_view(key) == "market")) what += " " + word;
    }
    lots.push_back({what, *count});
  }
  return joined(lots);
}

}  // namespace

std::optional<double> finite(const Json& value) {
  if (!value.is_number()) return std::nullopt;
  const double number = value.get<double>();
  return std::isfinite(number) ? std::optional(number) : std::nullopt;
}

std::optional<double> finite(const Fields& fields, const char* key) {
  const auto number = fields.real(key);
  return number && std::isfinite(*number) ? number : std::nullopt;
}

Curve curve_of(const Fields& object, const char* x, const char* y) {
  const Json &at = object.list(x), &values = object.list(y);
  Curve curve;
  for (std::size_t i = 0; i < std::min(at.size(), values.size()); ++i) {
    const auto one = finite(at[i]), other = finite(values[i]);
    if (one && other) curve.add(*one, *other);
  }
  return curve;
}

std::string view_label(const Fields& view) {
  const std::string name = view.text("name"), policy = view.text("policy");
  if (name.empty()) return policy.empty() ? "run" : policy;
  return policy.empty() || policy == name ? name : fmt::format("{} ({})", name, policy);
}

std::string machine_lines_text(const Json& lines) { return lots_text(lines, true); }

std::string option_text(const Fields& option) {
  const auto functions = finite(option, "functions");
  if (!functions) return lots_text(option.list("cluster"), false);
  std::string text = fmt::format("{} functions", *functions);
  if (const auto memory = finite(option, "memory_mib")) text += fmt::format(" of {} MiB", *memory);
  const std::string platform = option.text("platform");
  return platform.empty() ? text : text + " on " + platform;
}

}  // namespace mayfly
