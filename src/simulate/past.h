#pragma once

#include <optional>
#include <vector>

#include "simulate/course.h"

namespace mayfly {

/// One job to be done on a course.
struct RiskQuestion {
  double work = 1;  ///< in the course's unit
  std::optional<Seconds> deadline{};
  std::optional<Usd> budget{};
  Seconds planned{};       ///< how long it takes with every machine there
  double relative_sd = 0;  ///< of that prediction, log-normal
  double least_pace = 0;   ///< work per second without any machine of the market
};

/// How a moment looks: the pace of the last minutes and of the last hour, in parts of `full`.
struct Look {
  double minutes = 0;
  double hour = 0;
};
inline constexpr Seconds kLookBack{600};  ///< these minutes: what "now" lasts
Look look_at(const Course& course, double time, double full);
/// 1: alike; towards 0 the less they are.
double likeness(const Look& a, const Look& b);

/// What may be said of a question at a moment by someone who has seen the course up to it and nothing of the rest.
/// Windows of the past are looked at once, so that asking at a thousand moments is cheap. docs/models.md#now
class Past {
 public:
  /// Requires a deadline above 0. `course` must outlive this object.
  Past(const Course& course, const RiskQuestion& question);

  /// Probability that the job ends by the deadline if it starts now.
  double in_time(Seconds now) const;
  /// USD that half of such jobs stay below; nothing where fewer were seen to end.
  std::optional<double> cost_p50(Seconds now) const;
  /// Likewise s.
  std::optional<double> time_p50(Seconds now) const;

 private:
  /// A stretch of the course as long as the deadline.
  struct Window {
    double start = 0;  ///< s
    Look look{};
    double chance = 0;  ///< that a job begun then was done in time, over the prediction's error
    double end = 0;     ///< s; of a job as predicted; infinite: not within the course
    double time = 0;    ///< s, until then
    double cost = 0;    ///< USD, likewise
  };

  double chance_of(double done) const;
  std::size_t seen(double now) const;
  double side_by_side(std::size_t count) const;
  std::vector<double> weights(double now) const;
  std::optional<double> middle(double now, const std::vector<std::size_t>& order, double Window::* value,
                               double still) const;

  const Course& course_;
  RiskQuestion question_;
  double horizon_ = 0;
  double full_ = 0;   ///< work per second with every machine there
  double best_ = 0;   ///< chance with every machine there all the time
  double worst_ = 0;  ///< with none of the market
  std::vector<Window> windows_{};
  std::vector<std::size_t> by_cost_{};  ///< windows, the cheapest first
  std::vector<std::size_t> by_time_{};  ///< the shortest first
};

}  // namespace mayfly
