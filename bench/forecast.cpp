// Rolling-origin errors of every forecaster on every trace of the folders named: docs/benchmarks.md.
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "trace/forecast.h"
#include "trace/load.h"

using namespace mayfly;
namespace fs = std::filesystem;

namespace {

constexpr int kHorizons[] = {1, 4, 12};
constexpr std::size_t kMostIntervals = 20000;  // of the longest traces, the first

struct Counts {
  std::string name;
  std::vector<Interval> intervals;
};

/// The traces below the folder, in the order of their paths; the same counts under a second name only once.
void add_traces_of(const fs::path& folder, std::vector<Counts>& all) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file() && entry.path().extension() != ".md") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    const auto trace = load_trace(file);
    if (!trace) {
      fmt::print(stderr, "left out: {}\n", trace.error().message);
      continue;
    }
    Counts counts{(folder.filename() / fs::relative(file, folder)).replace_extension().string(),
                  intervals(merged(*trace), std::max(trace->gap, Seconds(60)), trace->duration)};
    if (counts.intervals.size() > kMostIntervals) counts.intervals.resize(kMostIntervals);
    const bool known =
        std::any_of(all.begin(), all.end(), [&](const Counts& other) { return other.intervals == counts.intervals; });
    if (!known) all.push_back(std::move(counts));
  }
}

void compare(const std::vector<Counts>& traces, int horizon) {
  const int history = history_length(horizon);
  std::map<std::string, double> sums;
  int rows = 0;
  fmt::print("\nHorizon {}, fitted on the last {} intervals, MAE in machines / normalised L1:\n\n| trace | origins |",
             horizon, history);
  const auto methods = point_forecasts({});
  for (const NamedForecast& method : methods) fmt::print(" {} |", method.name);
  fmt::print("\n| --- | --- |");
  for (std::size_t i = 0; i < methods.size(); ++i) fmt::print(" --- |");
  fmt::print("\n");
  for (const Counts& trace : traces) {
    int most = 0;
    for (const Interval& interval : trace.intervals) most = std::max(most, interval.available);
    if (trace.intervals.size() < static_cast<std::size_t>(history + 1 + horizon)) continue;
    fmt::print("| {} | {} |", trace.name, trace.intervals.size() - static_cast<std::size_t>(history + horizon));
    for (const NamedForecast& method : point_forecasts({.history = history, .most = most})) {
      const ForecastError error = rolling_error(method.next, trace.intervals, horizon, history);
      fmt::print(" {:.3f} / {:.4f} |", error.mae, error.normalised_l1);
      sums[method.name] += error.normalised_l1;
    }
    ++rows;
    fmt::print("\n");
  }
  fmt::print("| **mean of normalised L1** | |");
  for (const NamedForecast& method : methods) fmt::print(" {:.4f} |", sums[method.name] / std::max(1, rows));
  fmt::print("\n");
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<fs::path> folders(argv + 1, argv + argc);
  if (folders.empty()) folders.emplace_back("data/traces");
  std::vector<Counts> traces;
  for (const fs::path& folder : folders) {
    if (!fs::is_directory(folder)) {
      fmt::print(stderr, "{}: not a folder of traces\n", folder.string());
      return 2;
    }
    add_traces_of(folder, traces);
  }
  for (const int horizon : kHorizons) compare(traces, horizon);
  return 0;
}
