#pragma once

#include "data/loader.h"
#include "wire/message.h"

namespace mayfly {

/// What this process uses, from one look to the next.
class Meter {
 public:
  /// Counts from here on.
  void begin(const LoaderCounts& loader = {});
  /// Processor time, memory and the loader's work since begin().
  Measurement used(const LoaderCounts& loader) const;

 private:
  LoaderCounts loader_{};  ///< at the beginning
  double cpu_s_ = 0;
};

}  // namespace mayfly
