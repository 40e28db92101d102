#include "trace/write.h"

#include <algorithm>
#include <iterator>

#include "base/json.h"

namespace mayfly {
namespace {

/// As short as a reader can turn back into the same number.
template <class... Args>
void put(std::string& out, fmt::format_string<Args...> format, Args&&... args) {
  fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
}

std::string in_quotes(const std::string& text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// `"key": [[...],\n [...]],` with one element per line.
template <class Items, class Put>
void put_list(std::string& out, std::string_view key, const Items& items, Put put_item) {
  if (items.empty()) return;
  put(out, ",\n    \"{}\": [", key);
  bool first = true;
  for (const auto& item : items) {
    out += first ? "\n      " : ",\n      ";
    first = false;
    put_item(item);
  }
  out += "]";
}

void put_series(std::string& out, const Series& series) {
  put(out, "    \"type\": {},\n    \"zone\": {}", in_quotes(series.type), in_quotes(series.zone));
  put_list(out, "changes", series.changes,
           [&](const Change& c) { put(out, "[{}, {}, {}]", c.time.count(), c.added, c.removed); });
  put_list(out, "prices", series.prices,
           [&](const PricePoint& p) { put(out, "[{}, {}]", p.time.count(), p.price.value); });
  put_list(out, "stays", series.stays, [&](const Stay& s) {
    put(out, "[{}, {}, {}", s.begin.count(), s.end.count(), s.preempted);
    out += s.loss > 0 ? fmt::format(", {}]", s.loss) : "]";
  });
}

Result<const Series*> only_series(const Trace& trace) {
  if (trace.series.size() == 1) return trace.series.data();
  std::string zones;
  for (std::size_t i = 0; i < std::min<std::size_t>(trace.series.size(), 8); ++i)
    zones += fmt::format(" '{}'", trace.series[i].zone);
  return fail("{} series (zones{} ...), want one: choose with --zone or --type", trace.series.size(), zones);
}

}  // namespace

std::string mayfly_trace_text(const Trace& trace) {
  std::string out;
  put(out, "{{\"format\": \"mayfly-trace/1\",\n  \"name\": {},\n  \"observation\": \"{}\",\n", in_quotes(trace.name),
      name(trace.observation));
  put(out, "  \"gap_s\": {},\n  \"duration_s\": {},\n", trace.gap.count(), trace.duration.count());
  if (trace.start_unix) put(out, "  \"start_unix_s\": {},\n", *trace.start_unix);
  out += "  \"series\": [";
  for (std::size_t i = 0; i < trace.series.size(); ++i) {
    out += i == 0 ? "{\n" : ", {\n";
    put_series(out, trace.series[i]);
    out += "}";
  }
  out += "]}\n";
  return out;
}

Result<std::string> events_text(const Trace& trace) {
  const auto series = only_series(trace);
  if (!series) return unexpected(series.error());
  if ((*series)->stays.empty()) return fail("only counts machines, want a trace that names them (or --to counts)");
  struct Event {
    Seconds time{};
    bool removed = false;
    int loss = 0;
    std::size_t machine = 0;
    auto operator<=>(const Event&) const = default;
  };
  std::vector<Event> events;
  for (std::size_t i = 0; i < (*series)->stays.size(); ++i) {
    const Stay& stay = (*series)->stays[i];
    events.push_back({.time = stay.begin, .machine = i + 1});
    if (stay.preempted) events.push_back({.time = stay.end, .removed = true, .loss = stay.loss, .machine = i + 1});
  }
  std::sort(events.begin(), events.end());
  std::string out;
  for (const Event& event : events)
    put(out, "{},{},node{}\n", event.time.count() * 1000, event.removed ? "remove" : "add", event.machine);
  return out;
}

Result<std::string> counts_text(const Trace& trace) {
  const auto series = only_series(trace);
  if (!series) return unexpected(series.error());
  if ((*series)->changes.empty()) return fail("has prices and no machines, want counts");
  std::string out;
  const auto& changes = (*series)->changes;
  for (const Change& change : changes) put(out, "{},{}\n", change.time.count() * 1000, change.available);
  // The format has no end of its own: a last row makes it as long, read with its usual gap.
  const Seconds last = trace.duration - Seconds(60);
  if (last > changes.back().time) put(out, "{},{}\n", last.count() * 1000, changes.back().available);
  return out;
}

}  // namespace mayfly
