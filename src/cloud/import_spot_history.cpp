#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/text.h"
#include "cloud/import.h"

namespace mayfly {

std::string count_note(std::string_view what, const std::map<std::string, int>& counts) {
  constexpr std::size_t kMost = 8;
  std::string names;
  std::size_t shown = 0;
  int total = 0;
  for (const auto& [name, count] : counts) {
    total += count;
    if (++shown > kMost) continue;
    names += shown == 1 ? "" : ", ";
    names += count > 1 ? fmt::format("{} ({})", name, count) : name;
  }
  if (shown > kMost) names += fmt::format(" and {} more", shown - kMost);
  return fmt::format("{} ({}): {}", what, total, names);
}

namespace {

using Json = nlohmann::json;

Result<Json> parse_json(std::string_view text, const std::string& file) {
  const auto after_tag = [](std::string_view what) { return what.substr(std::min(what.find("] ") + 2, what.size())); };
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    const auto before = text.substr(0, error.byte == 0 ? 0 : error.byte - 1);
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    return fail("{}:{}: {}", file, line, after_tag(error.what()));
  } catch (const Json::exception& error) {
    return fail("{}: {}", file, after_tag(error.what()));
  }
}

/// One change of a price.
struct Quote {
  std::string time{};  ///< ISO, so that the order of texts is the order of times
  double usd_per_hour = 0;

  auto operator<=>(const Quote&) const = default;
};

/// The newest quotes: by type, then zone.
using Quotes = std::map<std::string, std::map<std::string, Quote>>;

/// A record's fields, each checked; the first that is wrong is remembered and the rest read as empty.
class RecordReader {
 public:
  RecordReader(const Json& record, std::size_t index, const std::string& file)
      : record_(record), index_(index), file_(file) {}

  std::string text(const char* key, std::string_view wanted) {
    const auto at = record_.find(key);
    if (at == record_.end()) return reject(key, "nothing", wanted), std::string();
    // Not the value itself: writing out a deeply nested one would recurse as deeply.
    if (!at->is_string()) return reject(key, at->type_name(), wanted), std::string();
    const auto& seen = at->get_ref<const std::string&>();
    if (seen.empty()) reject(key, "''", wanted);
    if (!is_name(seen))
      reject(key, fmt::format("'{}'", printable(seen)), fmt::format("{} without control characters", wanted));
    return at->get<std::string>();
  }

  Quote quote() {
    Quote quote{.time = text("Timestamp", "a time as 2014-01-06T07:10:55Z")};
    const auto price = text("SpotPrice", "a price");
    const auto usd = parse_number(price);
    const bool is_time = quote.time.size() > 10 && quote.time[10] == 'T' && parse_date(quote.time.substr(0, 10));
    if (!is_time) reject("Timestamp", fmt::format("'{}'", quote.time), "a time as 2014-01-06T07:10:55Z");
    if (!usd || *usd <= 0) reject("SpotPrice", fmt::format("'{}'", price), "a price");
    quote.usd_per_hour = usd.value_or(0);
    return quote;
  }

  const std::optional<Error>& error() const { return error_; }

 private:
  void reject(const char* key, std::string_view seen, std::string_view wanted) {
    if (error_) return;
    error_ = Error{fmt::format("{}: SpotPriceHistory[{}].{}: {}, want {}", file_, index_, key, seen, wanted)};
  }

  const Json& record_;
  std::size_t index_;
  const std::string& file_;
  std::optional<Error> error_{};
};

class SpotImport {
 public:
  explicit SpotImport(Catalog known) : result_{.catalog = std::move(known)} {}

  Result<void> add(const Json& record, std::size_t index, const std::string& file) {
    if (!record.is_object()) {
      return fail("{}: SpotPriceHistory[{}]: {}, want an object", file, index, record.type_name());
    }
    RecordReader reader(record, index, file);
    const auto product = reader.text("ProductDescription", "a product");
    const auto type = reader.text("InstanceType", "a type");
    const auto zone = reader.text("AvailabilityZone", "a zone");
    auto quote = reader.quote();
    if (reader.error()) return unexpected(*reader.error());
    if (product != "Linux/UNIX" && product != "Linux/UNIX (Amazon VPC)") {
      ++other_products_[product];
      return {};
    }
    Quote& newest = quotes_[type][zone];
    newest = std::max(newest, quote);
    return {};
  }

  Imported finish(bool more_pages) && {
    replace_prices();
    const auto tell = [&](std::string_view what, const std::map<std::string, int>& counts) {
      if (!counts.empty()) result_.notes.push_back(count_note(what, counts));
    };
    if (more_pages) result_.notes.emplace_back("NextToken is set: the history has more pages, which this file lacks");
    tell("records of products other than Linux ignored", other_products_);
    tell("zone prices ignored, the catalogue does not have the types", unknown_types_);
    tell("zones that the history does not have keep their older spot price", older_zones_);
    tell("types are cheapest outside the region of their on-demand price", other_regions_);
    return std::move(result_);
  }

 private:
  void replace_prices() {
    auto& [catalog, notes] = result_;
    std::string newest;
    for (const auto& type : catalog.types) {
      const auto at = quotes_.find(type.name);
      if (at == quotes_.end()) continue;
      for (const auto& [zone, quote] : at->second) newest = std::max(newest, quote.time);
    }
    if (newest.empty()) {
      notes.emplace_back("no spot price was replaced");
    } else {
      const auto source = add_source(catalog.sources, history_source(newest.substr(0, 10)));
      for (auto& type : catalog.types) {
        if (auto found = quotes_.extract(type.name)) replace_spot(type, std::move(found.mapped()), source);
      }
    }
    for (const auto& [type, zones] : quotes_) unknown_types_[type] = static_cast<int>(zones.size());
  }

  /// `date` has been checked.
  static Source history_source(const std::string& date) {
    return {.id = "aws-spot-history",
            .title = "aws ec2 describe-spot-price-history",
            .url = "https://docs.aws.amazon.com/cli/latest/reference/ec2/describe-spot-price-history.html",
            .day = parse_date(date).value_or(0),
            .date = date};
  }

  void replace_spot(InstanceType& type, std::map<std::string, Quote> quotes, std::size_t source) {
    const auto price = [&](const Quote& quote) { return Price{.rate = {quote.usd_per_hour}, .source = source}; };
    const auto cheapest = std::min_element(quotes.begin(), quotes.end(), [](const auto& a, const auto& b) {
      return a.second.usd_per_hour < b.second.usd_per_hour;
    });
    type.spot = price(cheapest->second);
    if (type.on_demand && !cheapest->first.starts_with(type.region)) ++other_regions_[type.name];
    for (auto& zone : type.zones) {
      if (const auto found = quotes.extract(zone.zone)) {
        zone.spot = price(found.mapped());
      } else if (zone.spot) {
        ++older_zones_[type.name];
      }
    }
    for (const auto& [zone, quote] : quotes) type.zones.push_back({.zone = zone, .spot = price(quote)});
  }

  Imported result_;
  Quotes quotes_{};
  std::map<std::string, int> other_products_{};
  std::map<std::string, int> unknown_types_{};  ///< their zones
  std::map<std::string, int> older_zones_{};
  std::map<std::string, int> other_regions_{};
};

}  // namespace

Result<Imported> import_spot_history(std::string_view json, const std::string& file, Catalog known) {
  const auto root = parse_json(json, file);
  if (!root) return unexpected(root.error());
  const auto list = root->find("SpotPriceHistory");
  if (list == root->end() || !list->is_array()) {
    return fail("{}: want the JSON of aws ec2 describe-spot-price-history, an object with the list SpotPriceHistory",
                file);
  }
  SpotImport import(std::move(known));
  for (std::size_t i = 0; i < list->size(); ++i) {
    const auto added = import.add((*list)[i], i, file);
    if (!added) return unexpected(added.error());
  }
  const auto token = root->find("NextToken");
  const bool more_pages = token != root->end() && token->is_string() && !token->get_ref<const std::string&>().empty();
  return std::move(import).finish(more_pages);
}

}  // namespace mayfly
