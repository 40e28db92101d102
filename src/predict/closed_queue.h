#pragma once

#include <span>

namespace mayfly {

/// `count` customers that each think for `think` seconds, then ask the one station for `service` seconds of its time.
struct CycleClass {
  double think = 0;
  double service = 0;
  int count = 0;
};

/// Cycles per second of each class, exactly, in a closed network whose one station is shared equally by those present
/// (processor sharing, as flows share a link); insensitive to how think and service times are distributed.
/// Model: docs/models.md#queue. `rates` has the size of `classes`. Allocates nothing.
void closed_queue_rates(std::span<const CycleClass> classes, std::span<double> rates);

}  // namespace mayfly
