#pragma once

#include <optional>
#include <span>

#include "predict/migration.h"
#include "trace/weather.h"

namespace mayfly {

/// Where training stands when a decision is due.
struct Position {
  int machines = 0;            ///< before the first event of the outlook
  std::optional<int> shape{};  ///< absent: nothing runs
  Seconds pending{0};          ///< what is left of a change under way
};

/// The shape to take in the first of the intervals ahead, so that most samples are trained by their end if they come as
/// foreseen; nothing where no shape fits. Parcae's optimiser: dynamic programming over (shape, change unfinished),
/// ties to the shallower predecessor, then to the first found. docs/models.md#look-ahead
std::optional<int> look_ahead(const Shapes& shapes, const MigrationCosts& costs, Seconds interval,
                              const Position& position, std::span<const Outlook> outlook);

}  // namespace mayfly
