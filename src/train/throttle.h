#pragma once

#include <chrono>
#include <optional>

#include "base/units.h"

namespace mayfly {

/// How much longer work that took this much of a core would have taken with a share of it.
constexpr Seconds rest_time(Seconds core, Seconds passed, double share) {
  const Seconds rest = core / share - passed;
  return rest > Seconds(0) ? rest : Seconds(0);
}

/// A slower processor, emulated: work of one thread, stretched to the time that it takes with a share of a core. What
/// other threads compute for it is not seen. Absent share: no change.
class Throttle {
 public:
  explicit Throttle(std::optional<double> share) : share_(share) {}
  /// Work begins, in this thread.
  void begin();
  /// Returns when what was done since begin() would be done. May be called again as the work goes on.
  void hold();

 private:
  std::optional<double> share_;
  std::chrono::steady_clock::time_point start_{};
  Seconds core_{};  ///< of this thread, at the start
};

}  // namespace mayfly
