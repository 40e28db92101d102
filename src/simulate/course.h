#pragma once

#include <functional>
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

/// Machines of a plan's lines, as the trace lets it have them. On-demand lines are always there. A spot line takes from
/// the series of its type: of its zone where the trace has that zone, else of all zones together; a series without type
/// stands for every type. Lines that draw on the same series share it, the first line first. Prices are the plan's, and
/// move as the trace's do where a line draws on one series with prices.
struct Holdings {
  struct Moment {
    double time = 0;
    std::vector<int> counts{};    ///< by line of the cluster
    std::vector<double> rates{};  ///< USD/h of one, by line
    bool changed = false;         ///< machines came or went, even where as many came as went
  };
  std::vector<Moment> moments{};  ///< rising times, the first at 0
  double duration = 0;
};
/// Fails where the trace has nothing to say of a line's type; the message names what it has.
Result<Holdings> holdings(const std::vector<PlanLine>& cluster, const Trace& trace);

/// Share of the job done per second by so many machines of each line.
using PaceOf = std::function<double(const std::vector<int>&)>;

/// Training with whatever is there; each change stops it for `recovery`. Servers are paid all the time.
Course course_of(const PlanOption& option, const Holdings& holdings, const PaceOf& pace, Seconds recovery);

/// At the speed predicted for exactly what is there. Work is counted in shares of the job, so that mixes which need
/// different numbers of steps can follow each other.
Course mixed_course(const PlanOption& option, const Problem& problem, const Candidate& candidate,
                    const Holdings& holdings, Seconds recovery);

/// The same for a job with shapes: one replay of the controller over the whole trace.
Course shaped_course(const PlanOption& option, const Holdings& holdings, const Job& job, const ReplayOptions& options);

}  // namespace mayfly
