#include "predict/data_path.h"

#include <algorithm>
#include <limits>

namespace mayfly {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

/// Seconds for these bytes; an unknown rate is no limit.
double seconds(Bytes bytes, BytesPerSecond rate) { return rate.value > 0 ? bytes.value / rate.value : 0; }
double rate(double seconds_each) { return seconds_each > 0 ? 1 / seconds_each : kInfinite; }
double prep_rate(const DataPath& path) { return path.prep > 0 ? path.prep * path.threads : kInfinite; }
double prep_core_s(const DataPath& path) { return path.prep > 0 ? 1 / path.prep : 0; }

double device_rate(const DataPath& path) { return 1 / (1 / path.device + path.exchange_s); }

double core_rate(const DataPath& path) {
  return path.cores > 0 ? rate((path.device_core_s + prep_core_s(path)) / path.cores) : kInfinite;
}

}  // namespace

double fetch_time(const DataPath& path) {
  const double own = std::clamp(path.cached, 0.0, 1.0);
  const double held = path.partitioned ? std::min(1.0, own * path.machines) : own;
  return own * seconds(path.sample, path.memory) + (held - own) * seconds(path.sample, path.network) +
         (1 - held) * seconds(path.sample, path.storage);
}

DataSpeed data_speed(const DataPath& path) {
  DataSpeed found{
      .device = device_rate(path), .prep = prep_rate(path), .fetch = rate(fetch_time(path)), .cores = core_rate(path)};
  // Where prep takes cores from the training, it is prep that costs.
  const bool shares = found.cores < std::min({found.device, found.prep, found.fetch});
  found.speed = shares ? found.cores : std::min({found.device, found.prep, found.fetch});
  const Part device = path.exchange_s * path.device > 1 ? Part::interconnect : Part::compute;
  if (shares || found.prep < std::min(found.device, found.fetch))
    found.bottleneck = prep_core_s(path) > 0 ? Part::prep : device;
  else
    found.bottleneck = found.fetch < found.device ? Part::fetch : device;
  return found;
}

std::optional<double> enough_cache(DataPath path) {
  path.cached = 0;
  path.partitioned = false;
  const double from_storage = fetch_time(path);
  path.cached = 1;
  const double from_memory = fetch_time(path);
  const double wanted = 1 / std::min({device_rate(path), prep_rate(path), core_rate(path)});
  if (from_storage <= wanted) return 0;
  if (from_memory > wanted) return std::nullopt;
  return (from_storage - wanted) / (from_storage - from_memory);
}

std::optional<double> enough_threads(const DataPath& path) {
  if (path.prep <= 0) return 0;
  const double wanted = std::min(device_rate(path), rate(fetch_time(path)));
  if (wanted > core_rate(path)) return std::nullopt;
  return wanted / path.prep;
}

}  // namespace mayfly
