#pragma once

#include <optional>
#include <vector>

#include "plan/planner.h"
#include "simulate/replay.h"

namespace mayfly {

/// What one cluster would have done over a whole trace: the share of its job done and the money spent since the start,
/// straight lines between points. A window of the trace is then a difference, so thousands of them cost next to
/// nothing. docs/models.md#risk
class Course {
 public:
  struct Point {
    double time = 0;   ///< s
    double done = 0;   ///< 1: a whole job
    double spent = 0;  ///< USD
  };
  /// Times rise from 0, the others never fall. Work that is lost again later must not be counted to begin with.
  explicit Course(std::vector<Point> points);

  double duration() const { return points_.back().time; }
  Point at(double time) const;
  /// Share of the job done per second, over the `span` before a moment.
  double pace(double time, double span) const;
  /// USD per second, likewise.
  double price(double time, double span) const;
  /// When `work` more is done than at `from`; nothing where the trace ends before.
  std::optional<double> reached(double from, double work) const;

 private:
  std::vector<Point> points_;
};

/// What machines of the market cost where a line draws on one series with prices.
enum class SpotPrices {
  around_the_plan,  ///< the plan's price, moving as the series does around its mean over the whole trace
  as_traced,  ///< the series' own; of a series without type the plan's, unmoved: whose prices they are is not known
};

/// A plan's machines, as the trace lets it have them. On-demand lines are always there. A spot line takes from the
/// series of its type: of its zone where the trace has that zone, else of all zones together; a series without type
/// stands for every type. Lines that draw on the same series share it. Prices are the plan's where a line's series have
/// none. Fails where the trace has nothing to say of a line's type; the
/// message names what it has.
Result<Scene> scene_of(const PlanOption& option, const Trace& trace, SpotPrices prices = SpotPrices::around_the_plan);

/// At the speed predicted for exactly what trains, in shares of the job, so that mixes which need different numbers of
/// steps can follow each other. `problem` must outlive the result.
PaceOf pace_of(const Scene& scene, const Problem& problem, std::size_t server);

/// One replay of the controller over the whole scene. `work`: of a whole job, in samples or in what the pace is in.
Course course_of(const Scene& scene, const Job& job, const ReplayOptions& options, double work);

}  // namespace mayfly
