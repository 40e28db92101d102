#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace mayfly {

/// Machines that came and went at one moment. Where a file only counts, one of the two is zero: machines exchanged
/// between two observations are not seen.
struct Change {
  Seconds time{};  ///< since the trace's start
  int added = 0;
  int removed = 0;
  int available = 0;  ///< afterwards
  bool operator==(const Change&) const = default;
};

struct PricePoint {
  Seconds time{};
  UsdPerHour price{};
  bool operator==(const PricePoint&) const = default;
};

/// One machine's stay, where the file names machines.
struct Stay {
  Seconds begin{};
  Seconds end{};
  bool preempted = false;  ///< false: still there when the trace ended
  int loss = 0;            ///< rank among the losses as the file lists them: the order of those at one moment
  bool operator==(const Stay&) const = default;
};

/// The weather of one instance type in one zone.
struct Series {
  std::string type{};  ///< empty: the file does not say
  std::string zone{};
  std::vector<Change> changes{};     ///< strictly rising times; the first at the first observation
  std::vector<PricePoint> prices{};  ///< strictly rising times; empty: not known
  std::vector<Stay> stays{};         ///< empty: the file only counts
  bool operator==(const Series&) const = default;
};

/// How the numbers were obtained; the two kinds are never mixed in one statistic.
enum class Observation {
  held,   ///< machines that a user kept until they were taken
  probe,  ///< what a launch request would have got at that moment
};
std::string_view name(Observation observation);

/// Availability, and prices where known, over time. Each observation holds until the next, the last for one `gap`.
struct Trace {
  std::string name{};
  Observation observation = Observation::held;
  Seconds gap{60};                     ///< between observations, as the file has it
  Seconds duration{};                  ///< from 0 to one gap after the last observation
  std::optional<double> start_unix{};  ///< seconds since 1970 of time 0, where the file is dated
  std::vector<Series> series{};
  bool operator==(const Trace&) const = default;
};

/// Machines available at a moment; 0 before the first observation.
int available_at(const Series& series, Seconds time);

/// The part in [from, to), with time 0 at `from`; the machines already there arrive at 0. Stays are cut likewise.
Series slice(const Series& series, Seconds from, Seconds to);

/// Never more than `most` machines: what a user who asks for `most` would have held, with a share of each loss.
Series capped(const Series& series, int most);

/// All series as one, for users to whom zones do not matter: at the mean price of what there is, where all have prices.
Series merged(const Trace& trace);

}  // namespace mayfly
