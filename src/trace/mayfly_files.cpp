// mayfly's own: traces, and the journals of runs and replays.
#include <array>
#include <deque>
#include <map>

#include "base/json_reader.h"
#include "trace/lines.h"
#include "trace/read.h"

namespace mayfly {
namespace {

double bounded(JsonReader& json, double least, double most, std::string_view wanted) {
  const double value = json.number(wanted);
  if (json.ok() && (value < least || value > most)) json.reject(fmt::format("{}, want {}", value, wanted));
  return value;
}

Seconds time_in(JsonReader& json) { return Seconds(bounded(json, 0, kLatest, "a time of 0 or more seconds")); }

/// Calls `read` for each part of a list of N, or of as few as Least.
template <std::size_t N, std::size_t Least = N, class Read>
void parts(JsonReader& json, std::string_view wanted, Read read) {
  std::size_t size = 0;
  json.begin_list(wanted);
  while (json.next_item()) {
    if (size == N) json.reject(fmt::format("more than {} parts, want {}", N, wanted));
    if (json.ok()) read(size++);
  }
  if (size < Least) json.reject(fmt::format("{} parts, want {}", size, wanted));
}

void read_changes(JsonReader& json, Series& series) {
  long long available = 0;
  json.begin_list();
  while (json.next_item()) {
    Change change;
    parts<3>(json, "[time, added, removed]", [&](std::size_t part) {
      if (part == 0) change.time = time_in(json);
      if (part == 1) change.added = json.integer(0, kMostAtOnce, "a number of machines");
      if (part == 2) change.removed = json.integer(0, kMostAtOnce, "a number of machines");
    });
    if (!series.changes.empty() && change.time <= series.changes.back().time)
      json.reject(fmt::format("time {}, want above {}", change.time.count(), series.changes.back().time.count()));
    available += change.added - change.removed;
    if (available < 0 || available > kMostMachines)
      json.reject(fmt::format("{} machines left at {} s, want 0 to {}", available, change.time.count(), kMostMachines));
    change.available = static_cast<int>(available);
    if (json.ok()) series.changes.push_back(change);
  }
}

void read_prices(JsonReader& json, Series& series) {
  json.begin_list();
  while (json.next_item()) {
    PricePoint point;
    parts<2>(json, "[time, USD/h]", [&](std::size_t part) {
      if (part == 0) point.time = time_in(json);
      if (part == 1) point.price = {bounded(json, 0, kDearest, "a price of 0 or more USD/h")};
    });
    if (!series.prices.empty() && point.time <= series.prices.back().time)
      json.reject(fmt::format("time {}, want above {}", point.time.count(), series.prices.back().time.count()));
    if (json.ok()) series.prices.push_back(point);
  }
}

void read_stays(JsonReader& json, Series& series) {
  json.begin_list();
  while (json.next_item()) {
    Stay stay;
    parts<4, 3>(json, "[begin, end, preempted]", [&](std::size_t part) {
      if (part == 0) stay.begin = time_in(json);
      if (part == 1) stay.end = time_in(json);
      if (part == 2) stay.preempted = json.flag("true or false");
      if (part == 3) stay.loss = json.integer(0, 1'000'000'000, "a rank of 0 or more");
    });
    if (stay.end < stay.begin)
      json.reject(
          fmt::format("a stay from {} to {} s, want an end that is not before", stay.begin.count(), stay.end.count()));
    if (json.ok()) series.stays.push_back(stay);
  }
}

void unknown_key(JsonReader& json, std::string_view key, std::vector<std::string> known) {
  json.reject(fmt::format("{}: unknown key{}", key.substr(0, 60), did_you_mean(key, known)));
}

Series read_series(JsonReader& json) {
  Series series;
  json.begin_object("a series");
  while (const auto key = json.next_key()) {
    if (*key == "type") {
      series.type = json.text("an instance type");
    } else if (*key == "zone") {
      series.zone = json.text("a zone");
    } else if (*key == "changes") {
      read_changes(json, series);
    } else if (*key == "prices") {
      read_prices(json, series);
    } else if (*key == "stays") {
      read_stays(json, series);
    } else {
      unknown_key(json, *key, {"type", "zone", "changes", "prices", "stays"});
    }
  }
  return series;
}

/// Nothing may happen after the trace ends.
std::optional<Seconds> last_moment(const Series& series) {
  std::optional<Seconds> last;
  const auto see = [&](Seconds time) { last = std::max(last.value_or(time), time); };
  if (!series.changes.empty()) see(series.changes.back().time);
  if (!series.prices.empty()) see(series.prices.back().time);
  for (const Stay& stay : series.stays) see(stay.end);
  return last;
}

}  // namespace

Result<Trace> read_mayfly_trace(std::string_view text, const std::string& file, const TraceOptions& options) {
  JsonReader json(text, file);
  Trace trace;
  std::optional<Seconds> gap;
  std::optional<Seconds> duration;
  bool series = false;
  json.begin_object();
  while (const auto key = json.next_key()) {
    if (*key == "format") {
      const auto format = json.text("'mayfly-trace/1'");
      if (json.ok() && format != "mayfly-trace/1")
        json.reject(fmt::format("format: {}, want 'mayfly-trace/1'", shown(format)));
    } else if (*key == "name") {
      trace.name = json.text("a name");
    } else if (*key == "observation") {
      const auto word = json.text("held or probe");
      if (json.ok() && word != "held" && word != "probe")
        json.reject(fmt::format("observation {}, want held or probe", shown(word)));
      trace.observation = word == "probe" ? Observation::probe : Observation::held;
    } else if (*key == "gap_s") {
      gap = time_in(json);
      if (json.ok() && gap->count() <= 0) json.reject("gap_s: 0, want a number above 0");
    } else if (*key == "duration_s") {
      duration = time_in(json);
      if (json.ok() && duration->count() <= 0) json.reject("duration_s: 0, want a number above 0");
    } else if (*key == "start_unix_s") {
      trace.start_unix = bounded(json, 0, 253402300799, "seconds since 1970, before the year 10000");
    } else if (*key == "series") {
      series = true;
      json.begin_list("a list of series");
      while (json.next_item()) trace.series.push_back(read_series(json));
    } else {
      unknown_key(json, *key, {"format", "name", "observation", "gap_s", "duration_s", "start_unix_s", "series"});
    }
  }
  json.finish();
  if (!json.ok()) return unexpected(json.error());
  if (!gap || !duration || !series)
    return fail("{}:1: {}: missing", file, !gap ? "gap_s" : !duration ? "duration_s" : "series");
  for (const Series& one : trace.series) {
    const auto last = last_moment(one);
    if (last && *last > *duration)
      return fail("{}:1: duration_s: {}, want {} or more: something happens then", file, duration->count(),
                  last->count());
  }
  const auto agreed = agreed_gap(gap, options, file);
  if (!agreed) return unexpected(agreed.error());
  trace.gap = *agreed;
  trace.duration = *duration;
  return trace;
}

namespace {

/// What a journal's line says of a worker; other keys are other readers' business.
struct JournalLine {
  std::optional<Seconds> time{};
  std::string event{};
  std::string worker{};
  std::string type{};
  std::string zone{};
  bool ignored = false;  ///< late or doubled: the controller has seen it before
};

JournalLine read_journal_line(JsonReader& json) {
  JournalLine line;
  const auto text_or_skip = [&](std::string& into) {
    if (json.peek() == JsonReader::Kind::text) {
      into = json.text("a text");
    } else {
      json.skip();
    }
  };
  json.begin_object("one JSON object per line");
  while (const auto key = json.next_key()) {
    if (*key == "t_s") {
      line.time = time_in(json);
    } else if (*key == "event") {
      text_or_skip(line.event);
    } else if (*key == "worker") {
      text_or_skip(line.worker);
    } else if (*key == "type") {
      text_or_skip(line.type);
    } else if (*key == "zone") {
      text_or_skip(line.zone);
    } else if (*key == "ignored") {
      line.ignored = true;
      json.skip();
    } else {
      json.skip();
    }
  }
  json.finish();
  return line;
}

/// Workers of a journal by the place they are in.
class Crew {
 public:
  std::optional<std::string> apply(const JournalLine& line) {
    const bool joined = line.event == "joined";
    if (line.ignored) return {};
    if (!joined && line.event != "lost") return {};
    if (line.worker.empty()) return fmt::format("{} without a worker's name", line.event);
    if (!line.time) return fmt::format("{} without t_s", line.event);
    const auto at = place_of_.find(line.worker);
    if (joined) {
      if (at != place_of_.end()) return fmt::format("worker {} joined, but is there already", shown(line.worker));
      names_.push_back(line.worker);
      const Place place{line.type, line.zone};
      place_of_[names_.back()] = place;
      machines_[place].add(*line.time, names_.back());
      return {};
    }
    if (at == place_of_.end()) return fmt::format("worker {} lost, but is not there", shown(line.worker));
    machines_[at->second].remove(*line.time, line.worker);
    place_of_.erase(at);
    return {};
  }

  Result<std::vector<Series>> take(Seconds end, const std::string& file) && {
    std::vector<Series> all;
    for (auto& [place, machines] : machines_) {
      auto series = std::move(machines).take(end, file);
      if (!series) return unexpected(series.error());
      series->type = place.first;
      series->zone = place.second;
      all.push_back(*std::move(series));
    }
    return all;
  }

 private:
  using Place = std::pair<std::string, std::string>;  ///< type, zone
  std::deque<std::string> names_{};                   ///< what the machines' names are views of
  std::map<std::string, Place, std::less<>> place_of_{};
  std::map<Place, Machines> machines_{};
};

Result<void> check_first_line(std::string_view line, const std::string& file, int number) {
  JsonReader json(line, file, number);
  std::string format;
  json.begin_object();
  while (const auto key = json.next_key()) {
    if (*key == "format") {
      format = json.text("'mayfly-journal/1'");
    } else {
      json.skip();
    }
  }
  json.finish();
  if (format != "mayfly-journal/1") json.reject(fmt::format("format: {}, want 'mayfly-journal/1'", shown(format)));
  if (!json.ok()) return unexpected(json.error());
  return {};
}

}  // namespace

Result<Trace> read_journal(std::string_view text, const std::string& file, const TraceOptions& options) {
  Lines lines(text);
  if (const auto first = lines.next()) {
    if (const auto good = check_first_line(*first, file, lines.number()); !good) return unexpected(good.error());
  }
  Crew crew;
  Seconds now{0};
  while (const auto row = lines.next()) {
    JsonReader json(*row, file, lines.number());
    const JournalLine line = read_journal_line(json);
    // A writer that was killed leaves its last line unfinished.
    if (!json.ok() && !lines.ended()) break;
    if (line.time && *line.time < now)
      json.reject(fmt::format("t_s: {} goes back, want {} or more", line.time->count(), now.count()));
    if (!json.ok()) return unexpected(json.error());
    now = line.time.value_or(now);
    if (const auto wrong = crew.apply(line)) json.reject(*wrong);
    if (!json.ok()) return unexpected(json.error());
  }
  const Seconds gap = options.gap.value_or(Seconds(60));
  auto series = std::move(crew).take(now + gap, file);
  if (!series) return unexpected(series.error());
  if (series->empty()) return fail("{}: no worker joined", file);
  return Trace{.gap = gap, .duration = now + gap, .series = *std::move(series)};
}

}  // namespace mayfly
