#pragma once

#include <cstdint>
#include <vector>

#include "job/profile.h"
#include "trace/trace.h"

namespace mayfly {

/// What Bamboo's own simulator assumes beside the profile.
struct BambooOptions {
  UsdPerHour spot{0.91};       ///< per machine
  UsdPerHour on_demand{3.06};  ///< per machine
  Seconds horizon{Hours(12)};  ///< the replay of a trace ends here, or where nothing is left to happen
};

/// Bamboo's random weather: for each hour of the day a probability of additions, uniform in [0, 1), and one probability
/// of losing a machine within an hour.
struct BambooWeather {
  double removal = 0;                ///< per machine and hour
  std::uint64_t seed = 1;            ///< equal seeds, equal weather
  Seconds longest{Hours(24 * 365)};  ///< gives up here; the simulator that this follows never does
};

/// The cluster from `time` to the next moment.
struct BambooMoment {
  Seconds time{};
  int machines = 0;       ///< paid for
  int ready = 0;          ///< of them, started
  int data_parallel = 0;  ///< pipelines that train; 0 while machines gather or are too few
  bool operator==(const BambooMoment&) const = default;
};

/// Cost and machines are means from 0 to the end of the last step; speed and value from the begin of the first.
struct BambooRun {
  std::int64_t steps = 0;
  int fatal_failures = 0;  ///< losses that redundancy could not mend
  int preemptions = 0;
  SamplesPerSecond speed{};
  UsdPerHour cost{};
  double value = 0;  ///< samples/s per USD/h: the mean over time of each step's own, not speed / cost
  double machines = 0;
  Seconds interval{};                  ///< mean, from one preemption to the next
  Seconds lifetime{};                  ///< mean, of all machines, those left at the end included
  Seconds first_step{};                ///< its begin
  Seconds last_step{};                 ///< its end
  bool finished = false;               ///< random weather: the profile's full_run_steps are done
  SamplesPerSecond on_demand_speed{};  ///< of the profile's on-demand cluster, for comparison
  UsdPerHour on_demand_cost{};
  std::vector<BambooMoment> moments{};
};

/// The run of Bamboo's simulator on a trace that names its machines: neighbour redundancy at a fixed depth. Where
/// machines come or go at the same millisecond their order decides who becomes whose neighbour, so the order of the
/// file counts (Stay::loss). Rules: docs/models.md#bamboo.
Result<BambooRun> bamboo_replay(const Profile& profile, const Series& series, const BambooOptions& options = {});

/// A whole training, full_run_steps, under random weather. The same rules; the random numbers are mayfly's own, so runs
/// agree with Bamboo's in distribution only.
Result<BambooRun> bamboo_random(const Profile& profile, const BambooWeather& weather,
                                const BambooOptions& options = {});

}  // namespace mayfly
