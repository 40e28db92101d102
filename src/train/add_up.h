#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "train/traffic.h"

namespace mayfly {

/// One exchange among all ranks of a formation.
struct Exchange {
  Traffic& traffic;
  int rank = 0;
  int size = 1;
  std::int64_t formation = 0;
  std::int64_t number = 0;       ///< of the exchanges of this formation
  std::vector<std::byte>& room;  ///< for what is on its way; grows as needed, and is worth keeping
};

/// Replaces the values with their sums over all ranks. Each sum is computed by one rank and copied by the others, and
/// in an order that only the number of values and ranks decides: the same bits everywhere, each time. Returns when
/// nothing of this exchange is left to be sent. Where it fails the values are garbage.
Result<void> add_up(const Exchange& exchange, std::span<float> values);
Result<void> add_up(const Exchange& exchange, std::span<double> values);

}  // namespace mayfly
