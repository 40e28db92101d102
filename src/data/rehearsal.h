#pragma once

#include <cstdint>

#include "data/dataset.h"
#include "data/order.h"
#include "data/raw_samples.h"

namespace mayfly {

/// What each stage of the way from storage to the trainer takes when it has the machine to itself.
struct Rehearsal {
  std::int64_t samples = 0;
  double bytes = 0;
  Seconds read{};     ///< by `readers` threads
  Seconds reread{};   ///< the same samples again
  Seconds prepare{};  ///< by one thread
};

/// The samples at the first `count` places of the order. A caller that wants them cold sees to that beforehand.
Result<Rehearsal> rehearse(const Dataset& data, const SampleOrder& order, std::optional<BytesPerSecond> storage,
                           std::int64_t count, int readers);

}  // namespace mayfly
