// Rows of dates: `date,count`, one column per zone, and the `day, time, count` lines of Bamboo's Google Cloud log.
#include <algorithm>
#include <utility>

#include "trace/lines.h"
#include "trace/read.h"

namespace mayfly {
namespace {

/// The times of the rows read so far: time 0 is the first, the gap is the usual distance between two.
class Calendar {
 public:
  explicit Calendar(const std::string& file) : file_(file) {}

  /// Seconds since the first row. May not go back.
  Result<Seconds> time(std::string_view text, int line) {
    const auto unix_time = parse_time(text);
    if (!unix_time) return fail("{}:{}: time {}, want for example 2026-01-31 07:10:55", file_, line, shown(text));
    if (!start_) start_ = unix_time;
    const Seconds time(*unix_time - *start_);
    if (rows_ > 0 && time <= last_)
      return fail("{}:{}: time {}, want one after the row before", file_, line, shown(text));
    if (rows_++ > 0) distances_.push_back((time - last_).count());
    last_ = time;
    return time;
  }

  /// A trace that ends one gap after the last row.
  Trace trace(const TraceOptions& options) && {
    Seconds gap = options.gap.value_or(Seconds(60));
    if (!options.gap && !distances_.empty()) {
      const auto middle = distances_.begin() + static_cast<std::ptrdiff_t>(distances_.size() / 2);
      std::nth_element(distances_.begin(), middle, distances_.end());
      gap = Seconds(*middle);
    }
    return {.observation = Observation::probe, .gap = gap, .duration = last_ + gap, .start_unix = start_};
  }

 private:
  const std::string& file_;
  std::optional<double> start_{};
  Seconds last_{0};
  std::size_t rows_ = 0;
  std::vector<double> distances_{};
};

Result<int> count_in(std::string_view field, const std::string& file, int line) {
  const auto count = parse_integer(field);
  if (!count || *count < 0 || *count > kMostMachines)
    return fail("{}:{}: count {}, want 0 to {}", file, line, shown(field), kMostMachines);
  return *count;
}

/// A first row that names its columns. Dates start with a digit.
bool is_header(std::string_view line) { return !line.empty() && (line[0] < '0' || line[0] > '9'); }

}  // namespace

Result<Trace> read_dates(std::string_view text, const std::string& file, const TraceOptions& options) {
  Lines lines(text);
  Calendar calendar(file);
  Changes changes;
  bool first = true;
  while (const auto line = lines.next()) {
    const auto row = fields<2>(*line);
    if (!row) return fail("{}:{}: {}, want date,count", file, lines.number(), shown(*line));
    if (std::exchange(first, false) && is_header(*line)) continue;
    const auto time = calendar.time((*row)[0], lines.number());
    if (!time) return unexpected(time.error());
    const auto count = count_in((*row)[1], file, lines.number());
    if (!count) return unexpected(count.error());
    changes.observe(*time, *count);
  }
  if (changes.empty()) return fail("{}: no rows, want date,count", file);
  auto taken = std::move(changes).take(file);
  if (!taken) return unexpected(taken.error());
  Trace trace = std::move(calendar).trace(options);
  trace.series.push_back({.changes = *std::move(taken)});
  return trace;
}

Result<Trace> read_zones(std::string_view text, const std::string& file, const TraceOptions& options) {
  constexpr std::size_t kMostZones = 1000;
  Lines lines(text);
  auto header = lines.next();
  if (!header || !is_header(*header))
    return fail("{}:{}: {}, want a first row that names the zones: time,zone,...", file, std::max(lines.number(), 1),
                shown(header.value_or("")));
  std::vector<Series> series;
  for (cut_field(*header); !header->empty();) {
    const auto zone = cut_field(*header);
    const bool twice = std::any_of(series.begin(), series.end(), [&](const Series& s) { return s.zone == zone; });
    if (zone.empty() || twice) return fail("{}:{}: zone {}, want a name of its own", file, lines.number(), shown(zone));
    if (series.size() == kMostZones) return fail("{}:{}: more than {} zones", file, lines.number(), kMostZones);
    series.push_back({.zone = std::string(zone)});
  }
  if (series.empty()) return fail("{}:{}: no zones, want time,zone,...", file, lines.number());
  Calendar calendar(file);
  std::vector<Changes> changes(series.size());
  while (auto line = lines.next()) {
    const auto columns = static_cast<std::size_t>(std::count(line->begin(), line->end(), ','));
    if (columns != series.size())
      return fail("{}:{}: {} columns, want {} as in the first row", file, lines.number(), columns + 1,
                  series.size() + 1);
    const auto time = calendar.time(cut_field(*line), lines.number());
    if (!time) return unexpected(time.error());
    for (Changes& zone : changes) {
      const auto count = count_in(cut_field(*line), file, lines.number());
      if (!count) return unexpected(count.error());
      zone.observe(*time, *count);
    }
  }
  if (changes[0].empty()) return fail("{}: no rows after the one that names the zones", file);
  Trace trace = std::move(calendar).trace(options);
  for (std::size_t i = 0; i < series.size(); ++i) {
    auto taken = std::move(changes[i]).take(file);
    if (!taken) return unexpected(taken.error());
    series[i].changes = *std::move(taken);
  }
  trace.series = std::move(series);
  return trace;
}

// The log repeats every reading for the two minutes after it, in advance: a reading that came sooner is dated before
// the lines above it, which it replaces. A line that goes back further than that is an error.
Result<Trace> read_gcloud(std::string_view text, const std::string& file, const TraceOptions& options) {
  struct Row {
    double unix_time = 0;
    int count = 0;
  };
  constexpr double kAhead = 120;
  constexpr std::size_t kDay = 10;
  Lines lines(text);
  std::vector<Row> rows;
  while (const auto line = lines.next()) {
    const auto row = fields<3>(*line);
    if (!row) return fail("{}:{}: {}, want day, time, count", file, lines.number(), shown(*line));
    const auto& [day, clock, word] = *row;
    const auto time = day.size() == kDay && clock.size() < kDay ? parse_time(fmt::format("{} {}", day, clock))
                                                                : std::optional<double>();
    if (!time)
      return fail("{}:{}: time {} {}, want for example 2026-01-31, 07:10:55", file, lines.number(), shown(day),
                  shown(clock));
    const auto count = count_in(word, file, lines.number());
    if (!count) return unexpected(count.error());
    if (!rows.empty() && *time < rows.back().unix_time - kAhead)
      return fail("{}:{}: time {} goes back by {} s, want {} at most", file, lines.number(), shown(clock),
                  rows.back().unix_time - *time, kAhead);
    while (!rows.empty() && rows.back().unix_time >= *time) rows.pop_back();
    rows.push_back({.unix_time = *time, .count = *count});
  }
  if (rows.empty()) return fail("{}: no rows, want day, time, count", file);
  Changes changes;
  const double start = rows[0].unix_time;
  for (const Row& row : rows) changes.observe(Seconds(row.unix_time - start), row.count);
  auto taken = std::move(changes).take(file);
  if (!taken) return unexpected(taken.error());
  const Seconds gap = options.gap.value_or(Seconds(60));
  return Trace{.observation = Observation::held,
               .gap = gap,
               .duration = Seconds(rows.back().unix_time - start) + gap,
               .start_unix = start,
               .series = {{.changes = *std::move(taken)}}};
}

}  // namespace mayfly
