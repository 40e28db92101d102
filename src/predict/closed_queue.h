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

/// As above, with two stations alike that each customer passes in every cycle, such as the two ways through a server's
/// link. `service`, the same in all classes, is what each of them takes while no more than `parallel` customers are
/// there (1 and above, not necessarily whole); more share that much service equally. At most kMostPaired customers.
void closed_pair_rates(std::span<const CycleClass> classes, double parallel, std::span<double> rates);
inline constexpr int kMostPaired = 127;

}  // namespace mayfly
