#pragma once

#include <map>
#include <optional>
#include <span>
#include <vector>

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

/// The same question when nothing more is foreseen after the event at hand. What the intervals to come are worth then
/// depends on the machines alone, so it is computed once for each number of them. Differs from look_ahead only where a
/// change outlasts its interval: the rest of it is a debt in the shape it leads to.
class QuietLookAhead {
 public:
  /// `shapes` and `costs` must outlive this object.
  QuietLookAhead(const Shapes& shapes, const MigrationCosts& costs, Seconds interval, int intervals);

  /// `event` has happened to position.machines; nothing where no shape fits.
  std::optional<int> choice(const Position& position, const Outlook& event) const;

 private:
  const std::vector<double>& worth(int machines) const;

  const Shapes& shapes_;
  const MigrationCosts& costs_;
  double interval_;
  int intervals_;
  mutable std::map<int, std::vector<double>> worth_{};  ///< by machines, of each shape held at the event's end
};

}  // namespace mayfly
