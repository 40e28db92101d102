#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>

#include "trace/trace.h"

namespace mayfly {

/// Of the machines whose end was seen. Those still there at the end are left out, so long stays are under-represented.
struct Lifetimes {
  Seconds mean{};
  Seconds p50{};
  Seconds p90{};
  int ended = 0;
  int still_there = 0;
};

/// Weighted by time, from the first price on.
struct PriceStats {
  UsdPerHour mean{};
  UsdPerHour least{};
  UsdPerHour most{};
};

/// An event is one moment; a preemption event is one at which machines went. Machines there at the start count as
/// added.
struct TraceStats {
  std::string type{};
  std::string zone{};
  Seconds duration{};
  std::optional<double> mean_available{};  ///< over [0, duration); nothing where the file has only prices
  int min_available = 0;
  int max_available = 0;
  double share_at_zero = 0;  ///< of the time
  long long preemption_events = 0;
  long long instances_preempted = 0;
  long long addition_events = 0;
  long long instances_added = 0;          ///< with those there at the start
  std::optional<double> share_multi{};    ///< of preemption events: more than one machine went
  std::optional<double> share_to_zero{};  ///< of preemption events: none was left
  std::map<int, long long> preemption_sizes{};
  std::optional<Seconds> between_preemptions_p50{};
  std::optional<Lifetimes> lifetime{};  ///< nothing where the file only counts or no machine's end was seen
  std::optional<PriceStats> price{};
  /// Machines lost per machine and hour, by hour of the day in UTC; nothing for hours without machines, or undated
  /// files.
  std::array<std::optional<double>, 24> losses_per_hour{};
};

/// Of one series of a trace that lasts `duration` and, where it is dated, starts at `start_unix`.
TraceStats trace_stats(const Series& series, Seconds duration, std::optional<double> start_unix = {});

/// Of all series together: machines of every type and zone in one count.
TraceStats trace_stats(const Trace& trace);

}  // namespace mayfly
