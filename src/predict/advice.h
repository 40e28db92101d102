#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cloud/catalog.h"
#include "predict/data_path.h"

namespace mayfly {

/// Another machine in place of the present one.
struct Fix {
  std::string type{};
  UsdPerHour price{};
  UsdPerHour extra{};     ///< against the present one; may be negative
  double speedup = 1;     ///< samples/s against the present one
  double cost_ratio = 1;  ///< money per sample against the present one
  double more_vcpus = 0;
  bool same_gpu = true;
  Part then = Part::compute;  ///< what limits it there
};

/// Which one of the stages would pay: samples/s against now, were it twice as fast.
struct Relief {
  double device = 1;
  double threads = 1;  ///< twice as many
  double storage = 1;
  double cache = 1;  ///< twice as large
};

struct Advice {
  DataSpeed now{};
  Relief twice{};
  std::optional<double> threads_enough{}, cache_enough{};
  double threads = 1;             ///< that prepare now
  double free_threads = 0;        ///< as many as there are cores, where that alone is worthwhile; 0: it is not
  double free_gain = 1;           ///< samples/s with them, against now
  std::optional<Fix> cheapest{};  ///< least money per sample among those at least `kWorthwhile` faster; none: no such
  std::optional<Fix> fastest{};   ///< where that is another
};
/// Gains below this are not worth a change.
inline constexpr double kWorthwhile = 1.05;

/// How the path would be on another type: threads by its vCPUs, devices by GPUs and their peak FLOPS (vCPUs where there
/// is none), the cache by its memory. None: the catalogue does not tell.
std::optional<DataPath> path_on(const DataPath& path, const InstanceType& now, const InstanceType& other);

/// Threads that cost nothing come first: other machines are compared with this one when all its cores may prepare.
/// `now` is one of the catalogue's; without it no money is spoken of.
Advice advice(const DataPath& path, const Catalog& catalog, const InstanceType* now, Market market);

/// "prep-bound: 4 more vCPUs per machine (g4dn.2xlarge instead of g4dn.xlarge, +$0.23/h): 1.8x as fast, 79 % of the
/// money per sample; a faster device would not help."
std::string advice_text(const Advice& advice, const std::string& now);

}  // namespace mayfly
