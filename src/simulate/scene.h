#pragma once

#include <functional>
#include <vector>

#include "cloud/machine_kind.h"
#include "control/job.h"
#include "trace/trace.h"

namespace mayfly {

/// Machines of the market that come and go together. Its lines share what there is, the first line first.
struct Supply {
  struct Line {
    MachineKind kind{};
    int most = 0;                      ///< machines
    UsdPerHour price{};                ///< of one, before the first of `prices`
    std::vector<PricePoint> prices{};  ///< strictly rising times
  };
  std::vector<Change> changes{};
  std::vector<Line> lines{};
};

/// Machines on demand that are held from the beginning to the end.
struct Rented {
  MachineKind kind{};
  UsdPerHour price{};
  int count = 0;
};

/// Work per second of so many training machines of each line: those of the supplies, then the rented ones.
using PaceOf = std::function<double(const std::vector<int>&)>;

/// Where a replay takes place: everything that is rented, and for how long there is weather.
struct Scene {
  std::vector<Supply> supplies{};
  std::vector<Rented> rented{};
  UsdPerHour standing{};  ///< of what is paid as long as training goes on: servers and their standbys
  Seconds duration{};
  int most = 0;   ///< machines of the market that are taken at a time, the cheapest first
  PaceOf pace{};  ///< nothing: by the job's shapes, whatever the machines
};

/// One series as the weather of the job's type; prices where the series has none are the job's.
Scene scene_of(const Series& series, Seconds duration, const Job& job);
/// Every series of a trace by itself, with its own prices. A series without type is of the job's.
Scene scene_of(const Trace& trace, const Job& job);

/// Most machines of the market that are there at a time, as far as they are taken.
int peak(const Scene& scene);

}  // namespace mayfly
