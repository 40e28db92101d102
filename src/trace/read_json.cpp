// JSON of one value per gap, and AWS's spot price history.
#include <algorithm>
#include <map>

#include "base/json_reader.h"
#include "trace/lines.h"
#include "trace/read.h"

namespace mayfly {
namespace {

constexpr std::string_view kPrice = "a price of 0 or more USD/h";

/// What a gap-JSON file says before it is known what its ones mean.
struct GapFile {
  std::optional<Seconds> gap{};
  std::optional<double> start{};
  std::optional<bool> preempted{};
  std::vector<int> data{};
  int data_line = 1;
  std::vector<double> prices{};
};

void read_metadata(JsonReader& json, GapFile& file) {
  json.begin_object();
  while (const auto key = json.next_key()) {
    if (*key == "gap_seconds") {
      file.gap = Seconds(json.number("seconds between two values"));
      if (json.ok() && (file.gap->count() <= 0 || file.gap->count() > kLatest))
        json.reject(fmt::format("gap_seconds: {}, want a number above 0", file.gap->count()));
    } else if (*key == "polarity") {
      const auto word = json.text("available or preempted");
      if (json.ok() && word != "available" && word != "preempted")
        json.reject(fmt::format("polarity {}, want available or preempted", shown(word)));
      file.preempted = word == "preempted";
    } else if (*key == "start_time" && json.peek() == JsonReader::Kind::text) {
      const auto word = json.text("a time");
      file.start = parse_time(word);
      if (json.ok() && !file.start)
        json.reject(fmt::format("start_time {}, want for example 2026-01-31T07:10:55Z", shown(word)));
    } else {
      json.skip();  // others describe the machine in words of their own
    }
  }
}

GapFile read_gap_file(JsonReader& json) {
  GapFile file;
  json.begin_object();
  while (const auto key = json.next_key()) {
    if (*key == "metadata") {
      read_metadata(json, file);
    } else if (*key == "data") {
      json.begin_list();
      file.data_line = json.line();
      while (json.next_item()) file.data.push_back(json.integer(0, kMostMachines, "a whole number of 0 or more"));
    } else if (*key == "prices") {
      json.begin_list();
      while (json.next_item()) {
        file.prices.push_back(json.number(kPrice));
        if (file.prices.back() < 0 || file.prices.back() > kDearest)
          json.reject(fmt::format("price {}, want {}", file.prices.back(), kPrice));
      }
    } else {
      json.reject(fmt::format("key {}, want metadata, data or prices", shown(*key)));
    }
  }
  json.finish();
  return file;
}

Result<std::vector<Change>> gap_changes(const GapFile& read, Seconds gap, const std::string& file,
                                        const TraceOptions& options) {
  if (read.data.empty()) return std::vector<Change>();
  if (read.preempted && options.preempted && *read.preempted != *options.preempted)
    return fail("{}: the file's own polarity is {}, want no other", file, *read.preempted ? "preempted" : "available");
  const auto preempted = read.preempted ? read.preempted : options.preempted;
  if (!preempted)
    return fail(
        "{}:{}: data: nothing says whether 1 means available or preempted; want metadata.polarity or --polarity", file,
        read.data_line);
  Changes changes;
  for (std::size_t i = 0; i < read.data.size(); ++i) {
    if (*preempted && read.data[i] > 1)
      return fail("{}:{}: data[{}]: {}, want 0 or 1 where 1 means preempted", file, read.data_line, i, read.data[i]);
    changes.observe(gap * static_cast<double>(i), *preempted ? 1 - read.data[i] : read.data[i]);
  }
  return std::move(changes).take(file);
}

}  // namespace

Result<Trace> read_gap_json(std::string_view text, const std::string& file, const TraceOptions& options) {
  JsonReader json(text, file);
  const GapFile read = read_gap_file(json);
  if (!json.ok()) return unexpected(json.error());
  if (read.data.empty() && read.prices.empty()) return fail("{}:1: neither data nor prices", file);
  if (!read.data.empty() && !read.prices.empty() && read.data.size() != read.prices.size())
    return fail("{}:{}: {} prices, want {} as there are values in data", file, read.data_line, read.prices.size(),
                read.data.size());
  const auto gap = agreed_gap(read.gap, options, file);
  if (!gap) return unexpected(gap.error());
  const auto size = static_cast<double>(std::max(read.data.size(), read.prices.size()));
  if (gap->count() * size > kLatest)
    return fail("{}: {} values every {} s, want {} s at most", file, size, gap->count(), kLatest);
  auto changes = gap_changes(read, *gap, file, options);
  if (!changes) return unexpected(changes.error());
  Series series{.changes = *std::move(changes)};
  for (std::size_t i = 0; i < read.prices.size(); ++i)
    add_price(series.prices, *gap * static_cast<double>(i), read.prices[i]);
  return Trace{.observation = Observation::probe,
               .gap = *gap,
               .duration = *gap * size,
               .start_unix = read.start,
               .series = {std::move(series)}};
}

namespace {

struct Quote {
  double unix_time = 0;
  double usd_per_hour = 0;
  auto operator<=>(const Quote&) const = default;
};

using Quotes = std::map<std::pair<std::string, std::string>, std::vector<Quote>>;

void read_record(JsonReader& json, Quotes& quotes) {
  std::string type;
  std::string zone;
  std::string product = "Linux/UNIX";
  std::optional<double> time;
  std::optional<double> price;
  json.begin_object("a record of SpotPriceHistory");
  while (const auto key = json.next_key()) {
    if (*key == "Timestamp") {
      const auto word = json.text("a time as 2014-01-06T07:10:55Z");
      time = parse_time(word);
      if (json.ok() && !time)
        json.reject(fmt::format("Timestamp {}, want a time as 2014-01-06T07:10:55Z", shown(word)));
    } else if (*key == "SpotPrice") {
      const auto word = json.text("a price in quotes");
      price = parse_number(word);
      if (json.ok() && (!price || *price <= 0 || *price > kDearest))
        json.reject(fmt::format("SpotPrice {}, want a price above 0", shown(word)));
    } else if (*key == "InstanceType") {
      type = json.text("an instance type");
    } else if (*key == "AvailabilityZone") {
      zone = json.text("a zone");
    } else if (*key == "ProductDescription") {
      product = json.text("a product");
    } else {
      json.skip();
    }
  }
  if (!time || !price || type.empty() || zone.empty())
    json.reject("a record lacks something, want Timestamp, SpotPrice, InstanceType and AvailabilityZone");
  if (json.ok() && (product == "Linux/UNIX" || product == "Linux/UNIX (Amazon VPC)"))
    quotes[{std::move(type), std::move(zone)}].push_back({.unix_time = *time, .usd_per_hour = *price});
}

}  // namespace

Result<Trace> read_spot_history(std::string_view text, const std::string& file, const TraceOptions& options) {
  JsonReader json(text, file);
  Quotes quotes;
  json.begin_object();
  while (const auto key = json.next_key()) {
    if (*key != "SpotPriceHistory") {
      json.skip();
      continue;
    }
    json.begin_list("a list of records");
    while (json.next_item()) read_record(json, quotes);
  }
  json.finish();
  if (!json.ok()) return unexpected(json.error());
  if (quotes.empty()) return fail("{}: SpotPriceHistory: no prices of Linux machines", file);
  double start = kLatest;
  double end = 0;
  for (auto& [place, list] : quotes) {
    std::sort(list.begin(), list.end());
    start = std::min(start, list.front().unix_time);
    end = std::max(end, list.back().unix_time);
  }
  const Seconds gap = options.gap.value_or(Seconds(60));
  Trace trace{
      .observation = Observation::probe, .gap = gap, .duration = Seconds(end - start) + gap, .start_unix = start};
  for (const auto& [place, list] : quotes) {
    Series series{.type = place.first, .zone = place.second};
    for (std::size_t i = 0; i < list.size(); ++i) {
      // Of several prices at one moment the last, which is the highest, counts.
      if (i + 1 < list.size() && list[i + 1].unix_time == list[i].unix_time) continue;
      add_price(series.prices, Seconds(list[i].unix_time - start), list[i].usd_per_hour);
    }
    trace.series.push_back(std::move(series));
  }
  return trace;
}

}  // namespace mayfly
