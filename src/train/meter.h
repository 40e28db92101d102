#pragma once

#include "wire/message.h"

namespace mayfly {

/// What this process uses, from one look to the next.
class Meter {
 public:
  /// Counts from here on.
  void begin();
  /// Processor time and memory since begin().
  Measurement used() const;

 private:
  double cpu_s_ = 0;  ///< at the beginning
};

}  // namespace mayfly
