#pragma once

#include <cmath>

#include "fuzz/fuzz.h"
#include "trace/load.h"
#include "trace/stats.h"
#include "trace/write.h"

namespace mayfly::fuzz {

inline void check_series(const Series& series, Seconds duration) {
  long long available = 0;
  Seconds last{-1};
  for (const Change& change : series.changes) {
    require(change.time > last && change.time.count() >= 0 && change.time <= duration, "changes come in order");
    require(change.added >= 0 && change.removed >= 0, "machines come and go by whole numbers");
    available += change.added - change.removed;
    require(available >= 0 && change.available == available, "what is left is what came and has not gone");
    last = change.time;
  }
  last = Seconds(-1);
  for (const PricePoint& point : series.prices) {
    require(point.time > last && point.time <= duration, "prices come in order");
    require(point.price.value >= 0 && std::isfinite(point.price.value), "a price is a price");
    last = point.time;
  }
  for (const Stay& stay : series.stays) {
    require(stay.begin.count() >= 0 && stay.begin <= stay.end && stay.end <= duration, "a stay is in the trace");
  }
}

/// Whatever the file was, a trace that was read can be counted, and written and read again.
inline void check_trace(const Trace& trace) {
  require(!trace.series.empty(), "a trace has series");
  require(trace.duration.count() > 0 && trace.gap.count() > 0, "a trace lasts");
  for (const Series& series : trace.series) check_series(series, trace.duration);
  const TraceStats stats = trace_stats(trace);
  if (stats.mean_available) {
    require(*stats.mean_available >= stats.min_available - 1e-6, "a mean is not below the least");
    require(*stats.mean_available <= stats.max_available + 1e-6, "a mean is not above the most");
    require(stats.share_at_zero >= -1e-9 && stats.share_at_zero <= 1 + 1e-9, "a share is a share");
  }
  const auto again = parse_trace(mayfly_trace_text(trace), kFile);
  require(again.has_value() && *again == trace, "a trace comes back as it was written");
}

/// Reads `text` as each of the formats, or as whatever it looks like where there are none.
inline void try_trace(std::string_view text, std::initializer_list<const char*> formats) {
  for (const char* format : formats) {
    const auto trace = parse_trace(text, kFile, {.format = format, .preempted = text.size() % 2 == 0});
    if (trace) {
      check_trace(*trace);
    } else {
      check_message(trace.error());
    }
  }
}

}  // namespace mayfly::fuzz
