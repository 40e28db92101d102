#pragma once

#include <optional>

#include "base/units.h"
#include "predict/speed.h"

namespace mayfly {

/// What brings samples to the devices of one machine: fetched from a cache or from storage, prepared by threads, taken
/// by the devices. Each stage works while the others do, so the slowest sets the pace. docs/models.md#data-path
struct DataPath {
  double device = 0;         ///< samples/s the devices take when data lie ready in memory
  double exchange_s = 0;     ///< seconds per sample that all of them wait for each other's gradients
  double prep = 0;           ///< samples/s of one prep thread; 0: nothing to prepare
  double threads = 1;        ///< that prepare
  double cores = 0;          ///< that threads and, without a GPU, the training share; 0: threads are not held up
  double device_core_s = 0;  ///< core-seconds of the training itself per sample
  Bytes sample{};            ///< in storage, on average
  BytesPerSecond storage{};  ///< 0: as fast as memory
  BytesPerSecond memory{};   ///< of the cache; 0: unlimited
  BytesPerSecond network{};  ///< between machines; 0: unlimited
  double cached = 0;         ///< share of the data set that a machine's cache holds
  int machines = 1;          ///< that share the epoch
  bool partitioned = false;  ///< each asks the others' caches before storage
  bool operator==(const DataPath&) const = default;
};

/// Samples/s of each stage and of all together.
struct DataSpeed {
  double device = 0;  ///< exchange included
  double prep = 0;    ///< infinite where nothing is prepared
  double fetch = 0;   ///< infinite where nothing limits it
  double cores = 0;   ///< what the processor can do where prep and training share it; infinite otherwise
  double speed = 0;
  Part bottleneck = Part::compute;  ///< fetch, prep, interconnect or compute
};
DataSpeed data_speed(const DataPath& path);

/// Seconds per sample for fetching: x/C + (1-x)/S, with caches of others x_local/C + x_remote/N + (1-x')/S.
double fetch_time(const DataPath& path);

/// The smallest cached share with which fetching keeps up with prep and devices: (1/S - 1/R) / (1/S - 1/C). None: even
/// memory is too slow.
std::optional<double> enough_cache(DataPath path);
/// Prep threads with which preparing keeps up with fetching and devices. None: the cores do not allow it.
std::optional<double> enough_threads(const DataPath& path);

}  // namespace mayfly
