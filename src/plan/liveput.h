#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "predict/migration.h"
#include "trace/weather.h"

namespace mayfly {

/// When a decision is taken: on the event, knowing it, or before it, knowing only what went before.
enum class Sight { informed, blind };

struct LiveputOptions {
  Seconds interval{60};
  Sight sight = Sight::informed;
  /// Intervals ahead whose expected samples count.
  int horizon = 12;
  /// Shapes slower than this share of the best for the same machines are never taken.
  double keep = 0.8;
};

/// What each shape is worth: expected samples over the horizon, under the weather as learned so far, if every later
/// decision is the best one. Expectation over the whole distribution of losses and arrivals and over victims; changes
/// cost what MigrationCosts says, so a switch is made only where it is expected to pay before the next event.
/// docs/models.md#liveput
class Liveput {
 public:
  /// `shapes` and `costs` must outlive this object.
  Liveput(const Shapes& shapes, const MigrationCosts& costs, int most_machines, LiveputOptions options);

  /// Values over exactly the horizon, under the weather as known.
  void learn(const Weather& weather);
  /// Brings earlier values up to date with what the weather has taught since: a few intervals are added at the near
  /// end, so the horizon grows. Much cheaper than learning anew, and the choices differ little.
  void relearn(const Weather& weather);

  /// Informed: the shape to take now that `outlook` has happened to `machines`, the weather being in state `mode`
  /// since. Nothing where none fits.
  std::optional<int> choice(int mode, int machines, std::optional<int> shape, const Outlook& outlook) const;
  /// Blind: the shape to plan for an interval whose event is not known yet.
  std::optional<int> blind_choice(int mode, int machines, std::optional<int> shape) const;
  /// Expected samples ahead, from a shape held with so many machines in that state of the weather.
  double value(int mode, int machines, int shape) const { return values_[index(mode, machines, shape)]; }

 private:
  std::size_t index(int mode, int machines, int shape) const {
    return (static_cast<std::size_t>(mode) * static_cast<std::size_t>(most_ + 1) + static_cast<std::size_t>(machines)) *
               static_cast<std::size_t>(size_ + 1) +
           static_cast<std::size_t>(shape);
  }
  /// Most samples from `shape` after an event, and the shape that gives them.
  std::pair<double, int> best(int mode, int machines, const Outlook& outlook, int shape) const;
  /// Samples from `shape` when `plan` was decided before the event.
  double planned(int mode, int machines, const Outlook& outlook, int shape, int plan) const;
  void adopt(const Weather& weather);
  void sweep();
  /// Expected worth over the ways the interval may go, by mode, given what each way is worth.
  template <class Worth>
  void expect(int machines, Worth worth, std::vector<double>& by_mode) const;
  const MigrationCosts::Table& costs(int machines, int lost) const;

  const Shapes& shapes_;
  const MigrationCosts& costs_;
  LiveputOptions options_;
  int most_;
  int size_;
  std::vector<std::vector<int>> worthwhile_;  ///< by machines: the shapes that may be taken
  std::vector<int> held_;                     ///< every shape that may be running, and `size_`
  std::vector<std::vector<int>> plans_;       ///< blind, by machines: the shapes that may be planned
  std::vector<double> values_;
  /// The weather as of the last learn(): by mode, and by machines.
  std::vector<std::pair<double, double>> rates_;
  std::vector<int> calmer_;  ///< by mode: the mode after an interval without event
  int after_loss_ = 0;
  int after_arrival_ = 0;
  std::vector<std::vector<std::pair<int, double>>> losses_;
  std::vector<std::vector<std::pair<int, double>>> arrivals_;
  mutable std::vector<const MigrationCosts::Table*> tables_;  ///< by machines and lost; null: not asked for yet
};

/// A plan for more machines than there are: fewer pipelines of the same depth, or what fits best.
std::optional<int> fitted(const Shapes& shapes, int shape, int machines);

}  // namespace mayfly
