#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trace/load.h"

// The readers behind parse_trace, one per format. Each fills in what its file says; parse_trace adds the rest.
namespace mayfly {

/// Most machines a file may speak of at once.
inline constexpr int kMostMachines = 1'000'000;
/// Most that may come, or go, at one moment; sums over a file are kept in wider types.
inline constexpr int kMostAtOnce = 1'000'000'000;
/// Latest time in a file: 30,000 years, so that no sum of times loses a second.
inline constexpr double kLatest = 1e12;
/// Highest price in a file, USD an hour.
inline constexpr double kDearest = 1e9;

Result<Trace> read_events(std::string_view text, const std::string& file, const TraceOptions& options);
Result<Trace> read_counts(std::string_view text, const std::string& file, const TraceOptions& options);
Result<Trace> read_dates(std::string_view text, const std::string& file, const TraceOptions& options);
Result<Trace> read_zones(std::string_view text, const std::string& file, const TraceOptions& options);
Result<Trace> read_gcloud(std::string_view text, const std::string& file, const TraceOptions& options);
Result<Trace> read_parcae_replay(std::string_view text, const std::string& file, const TraceOptions& options);
Result<Trace> read_parcae_choices(std::string_view text, const std::string& file, const TraceOptions& options);
Result<Trace> read_gap_json(std::string_view text, const std::string& file, const TraceOptions& options);
Result<Trace> read_spot_history(std::string_view text, const std::string& file, const TraceOptions& options);
Result<Trace> read_mayfly_trace(std::string_view text, const std::string& file, const TraceOptions& options);
Result<Trace> read_journal(std::string_view text, const std::string& file, const TraceOptions& options);

/// Gathers changes in rising order of time; what happens at one moment becomes one change.
class Changes {
 public:
  void add(Seconds time, int added, int removed);
  /// A count: what differs from the one before came or went. The first count is kept even where it is 0.
  void observe(Seconds time, int count);
  int available() const { return available_; }
  bool empty() const { return changes_.empty(); }
  /// An error where more machines came or went at one moment than an int holds.
  Result<std::vector<Change>> take(const std::string& file) &&;

 private:
  std::vector<Change> changes_{};
  int available_ = 0;
  bool overflow_ = false;
};

/// Named machines of one series, each added and removed in turn.
class Machines {
 public:
  /// False where the name is there already (add), or is not (remove). `name` must outlive this object.
  bool add(Seconds time, std::string_view name);
  bool remove(Seconds time, std::string_view name);
  /// Stays in the order they began; those that have not ended last until `end`.
  Result<Series> take(Seconds end, const std::string& file) &&;

 private:
  std::unordered_map<std::string_view, std::size_t> held_{};  ///< name -> index of its stay
  std::vector<Stay> stays_{};
  int losses_ = 0;
  Changes changes_{};
};

/// Appends a price unless it is the one already in force.
void add_price(std::vector<PricePoint>& prices, Seconds time, double usd_per_hour);

/// The gap a file states, or the user's; an error where they differ.
Result<Seconds> agreed_gap(std::optional<Seconds> stated, const TraceOptions& options, const std::string& where);

}  // namespace mayfly
