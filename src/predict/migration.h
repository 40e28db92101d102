#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "base/result.h"
#include "predict/hits.h"
#include "predict/shapes.h"

namespace mayfly {

/// Machines outside the grid when the shape changes: strangers who must be let in, or already members of the group.
enum class Spares { cold, warm };

struct MigrationOptions {
  Spares spares = Spares::cold;
  /// Parcae's released table charges a re-partition only for what its last stage lacks, where it means the sum.
  bool last_stage_only = true;
};

/// Layers of each stage when `layers` are cut into `stages`: the first takes one more, what is left over goes to the
/// stages before the last. First layer of each stage, and the end.
std::vector<int> stage_cuts(int layers, int stages);

/// What it costs to go from one shape to another after some machines were lost: time during which nothing trains.
/// Victims are any `lost` of the `machines` held before, all sets alike; the expectation over them is exact, not
/// sampled. Where a re-partition has too many outcomes to list, the middle of its bounds is used and error() says by
/// how much it may be off. Costs are kept once computed: not for sharing between threads. docs/models.md#migration
class MigrationCosts {
 public:
  MigrationCosts(MigrationCosts&& other) noexcept;
  MigrationCosts& operator=(MigrationCosts&&) = delete;
  ~MigrationCosts() = default;

  /// Needs layers, transfers and restart costs in the profile's pipeline section.
  static Result<MigrationCosts> make(const Profile& profile, const Shapes& shapes, MigrationOptions options = {});
  /// One number for every change, for jobs of which no more is known.
  static MigrationCosts constant(const Shapes& shapes, Seconds cost);

  /// Expected seconds of every change after one kind of event, each computed when first asked for. Shape `size` stands
  /// for nothing running. Valid while the costs live.
  class Table {
   public:
    double operator()(int from, int to) const {
      double& cost =
          entries_[static_cast<std::size_t>(from) * static_cast<std::size_t>(size_) + static_cast<std::size_t>(to)];
      if (std::isnan(cost)) cost = costs_->change(machines_, from, lost_, to);
      return cost;
    }

   private:
    friend class MigrationCosts;
    Table(const MigrationCosts& costs, int machines, int lost);
    const MigrationCosts* costs_;
    int machines_;
    int lost_;
    int size_;
    mutable std::vector<double> entries_;
  };
  const Table& table(int machines, int lost) const;
  /// One entry; `from` absent: nothing was running.
  Seconds expected(int machines, std::optional<int> from, int lost, int to) const;
  /// The same change when it is known how many of the `lost` each stage had: what a sampler averages.
  Seconds outcome(int machines, int from, int lost, const std::vector<int>& lost_by_stage, int to) const;

  /// Everything rebuilt in this shape: with newcomers, or among those already there.
  Seconds restart(int shape, bool newcomers) const;
  /// Survivors form their groups anew and the slowest stage is copied once: what a pipeline that lost a machine needs.
  Seconds regroup(int shape) const;
  /// Saving to and loading from storage, as the profile has it.
  Seconds checkpoint() const { return Seconds(checkpoint_); }
  /// Every stage's state sent once, one after the other.
  Seconds whole_state(int shape) const;
  /// Largest error of any expectation so far; 0 where all were exact.
  Seconds error() const { return Seconds(error_); }

 private:
  /// Of a change that keeps the depth.
  struct SameDepth {
    double intra = 0;     ///< probability that every stage can help itself
    double transfer = 0;  ///< expected transfer time, 0 where they can
  };

  /// The ways to lose machines of one shape, told apart by survivors of each stage, of which `enough` are all alike.
  struct Outcomes {
    std::vector<std::uint16_t> survivors{};  ///< stage by stage, outcome by outcome
    std::vector<double> probabilities{};
    bool too_many = false;
  };

  explicit MigrationCosts(const Shapes& shapes) : shapes_(shapes) {}
  double group(const Shape& shape, bool newcomers) const;
  double send(double bytes) const;
  double stage_bytes(int stages, int stage) const;
  double stage_time(int stages, int stage) const { return send(stage_bytes(stages, stage)); }
  double intra(const Shape& shape) const;
  double broadcast(const Shape& to) const;
  bool newcomers(int machines, const Shape& from, int lost, const Shape& to) const;
  const SameDepth& same_depth(int from, int to, int hit) const;
  /// Bytes each new stage lacks on a machine of each old stage, [new * old stages + old].
  const std::vector<double>& lacking(int old_stages, int new_stages) const;
  double missing_time(int old_stages, std::vector<int>& survivors, int new_stages) const;
  /// Between which missing_time lies, whichever machines the so many survivors are.
  std::pair<double, double> missing_bounds(int old_stages, int new_stages, int survivors) const;
  const Outcomes& outcomes(int from, int hit, int enough) const;
  double expected_missing_time(int from, int stages, int hit) const;
  double change(int machines, int from, int lost, int to) const;

  Shapes shapes_;
  MigrationOptions options_{};
  std::optional<double> constant_{};
  std::vector<double> layer_ends_{};        ///< bytes of the first so many layers
  std::map<int, std::vector<int>> cuts_{};  ///< by depth
  std::vector<TransferPoint> transfers_{};
  std::map<int, double> builds_{};
  RestartCost restart_{};
  double checkpoint_ = 0;
  mutable double error_ = 0;
  mutable std::map<std::pair<int, int>, std::vector<double>> lacking_{};
  mutable std::map<std::tuple<int, int, int>, SameDepth> same_depth_{};
  mutable std::map<std::tuple<int, int, int>, double> missing_{};
  mutable int listed_from_ = -1;
  mutable std::map<std::pair<int, int>, Outcomes> listed_{};  ///< of that shape only, by hit and enough: they are long
  mutable std::map<std::pair<int, int>, std::unique_ptr<Table>> tables_{};
};

}  // namespace mayfly
