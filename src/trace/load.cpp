#include "trace/load.h"

#include <algorithm>
#include <array>

#include "base/file.h"
#include "base/json_reader.h"
#include "trace/lines.h"
#include "trace/read.h"

namespace mayfly {
namespace {

using Reader = Result<Trace> (*)(std::string_view, const std::string&, const TraceOptions&);

constexpr std::array<std::string_view, 11> kNames{"mayfly",        "journal",        "events",   "counts",
                                                  "parcae-replay", "parcae-choices", "gap-json", "dates",
                                                  "zones",         "gcloud",         "aws-spot"};
constexpr std::array<Reader, 11> kReaders{read_mayfly_trace,  read_journal,        read_events,      read_counts,
                                          read_parcae_replay, read_parcae_choices, read_gap_json,    read_dates,
                                          read_zones,         read_gcloud,         read_spot_history};

/// By the keys of the first object, which in a journal is the first line.
Result<std::string_view> json_format(std::string_view text, const std::string& file) {
  JsonReader json(text, file);
  json.begin_object();
  while (const auto key = json.next_key()) {
    if (*key == "format") {
      const auto format = json.text("a format");
      if (format.starts_with("mayfly-journal/")) return "journal";
      if (format.starts_with("mayfly-trace/")) return "mayfly";
      json.reject(fmt::format("format: {}, want 'mayfly-trace/1' or 'mayfly-journal/1'", shown(format)));
    } else if (*key == "SpotPriceHistory") {
      return "aws-spot";
    } else if (*key == "metadata" || *key == "data") {
      return "gap-json";
    } else {
      json.skip();
    }
  }
  json.reject("not a trace: want one of the keys format, data or SpotPriceHistory");
  return unexpected(json.error());
}

/// By the first row: how many columns it has, and whether it starts with a number, a date or a name.
Result<std::string_view> csv_format(std::string_view line, const std::string& file, int number) {
  const auto columns = 1 + std::count(line.begin(), line.end(), ',');
  std::string_view rest = line;
  const auto first = cut_field(rest);
  const auto second = cut_field(rest);
  if (parse_number(first)) {
    if (columns == 3) return "events";
    if (columns == 2) return "counts";
  } else if (columns == 3 && parse_date(first) && second.find(':') != std::string_view::npos) {
    return "gcloud";
  } else if (columns == 2 && parse_time(first)) {
    return "dates";
  } else if (first == "date" || first == "time" || first == "timestamp") {
    const bool count = second == "availability" || second == "available" || second == "count";
    return columns == 2 && count ? "dates" : "zones";
  }
  return fail("{}:{}: {}: not a trace: want ms,add|remove,machine or ms,count or date,count or a JSON format", file,
              number, shown(line));
}

Result<std::string_view> recognised(std::string_view text, const std::string& file) {
  Lines lines(text);
  const auto line = lines.next();
  if (!line) return fail("{}:1: empty file", file);
  if (line->front() == '{') return json_format(text, file);
  if (line->front() != '[') return csv_format(*line, file, lines.number());
  const auto inner = trimmed(line->substr(1));
  return inner.empty() || inner[0] == '{' || inner[0] == ']' ? "parcae-choices" : "parcae-replay";
}

/// A type or zone the user gave names the series, or chooses among those that have names.
Result<void> apply_name(Trace& trace, std::string Series::* member, std::string_view what, const std::string& given,
                        const std::string& file) {
  if (given.empty()) return {};
  std::vector<std::string> known;
  for (Series& series : trace.series) {
    if ((series.*member).empty()) series.*member = given;
    known.push_back(series.*member);
  }
  std::erase_if(trace.series, [&](const Series& series) { return series.*member != given; });
  if (!trace.series.empty()) return {};
  return fail("{}: no {} '{}' in it{}; want for example '{}'", file, what, given, did_you_mean(given, known),
              known.front());
}

Result<void> complete(Trace& trace, const std::string& file, const TraceOptions& options) {
  if (trace.name.empty()) trace.name = std::filesystem::path(file).stem().string();
  if (options.observation) trace.observation = *options.observation;
  if (trace.series.empty()) return fail("{}: no series", file);
  // The last event may be at the limit, and what it opens lasts beyond it.
  if (trace.duration.count() > kLatest)
    return fail("{}: lasts {} s, want {} s at most", file, trace.duration.count(), kLatest);
  long long most = 0;
  for (const Series& series : trace.series) {
    int peak = 0;
    for (const Change& change : series.changes) peak = std::max(peak, change.available);
    if (peak > kMostMachines) return fail("{}: {} machines at once, want {} at most", file, peak, kMostMachines);
    most += peak;
  }
  constexpr long long kMostTogether = 1'000'000'000;
  if (most > kMostTogether) return fail("{}: {} machines in all series, want {} at most", file, most, kMostTogether);
  if (const auto typed = apply_name(trace, &Series::type, "type", options.type, file); !typed)
    return unexpected(typed.error());
  return apply_name(trace, &Series::zone, "zone", options.zone, file);
}

}  // namespace

std::span<const std::string_view> trace_formats() { return kNames; }

Result<Trace> parse_trace(std::string_view text, const std::string& file, const TraceOptions& options) {
  const auto line_of = [&](std::size_t at) {
    return 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  };
  if (const auto nul = text.find('\0'); nul != std::string_view::npos)
    return fail("{}:{}: binary file, want text", file, line_of(nul));
  if (const auto end = valid_utf8(text); end < text.size())
    return fail("{}:{}: not UTF-8, want text", file, line_of(end));
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  if (!Lines(text).next()) return fail("{}:1: empty file", file);
  std::string_view format = options.format;
  if (format.empty()) {
    const auto found = recognised(text, file);
    if (!found) return unexpected(found.error());
    format = *found;
  }
  const auto known = std::find(kNames.begin(), kNames.end(), format);
  if (known == kNames.end()) {
    const std::vector<std::string> names(kNames.begin(), kNames.end());
    return fail("{}: trace format '{}': want one of {}{}", file, format, fmt::join(kNames, ", "),
                did_you_mean(format, names));
  }
  auto trace = kReaders[static_cast<std::size_t>(known - kNames.begin())](text, file, options);
  if (!trace) return trace;
  if (const auto good = complete(*trace, file, options); !good) return unexpected(good.error());
  return trace;
}

Result<Trace> load_trace(const std::filesystem::path& path, const TraceOptions& options) {
  const auto text = load_text(path);
  if (!text) return unexpected(text.error());
  return parse_trace(*text, path.string(), options);
}

}  // namespace mayfly
