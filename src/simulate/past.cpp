// Model: docs/models.md#now
#include "simulate/past.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace mayfly {
namespace {

constexpr double kMinutes = kLookBack.count();
constexpr double kWindowsPerDeadline = 12;
// Opinions, each in windows side by side.
constexpr double kAllAlike = 1;    ///< that of all windows, whatever they look like
constexpr double kAsItIs = 1;      ///< that everything stays as it is
constexpr double kJeffreys = 0.5;  ///< of success, and as much of failure: what the share of few windows is worth
constexpr double kUnseen = std::numeric_limits<double>::infinity();

}  // namespace

Look look_at(const Course& course, double time, double full) {
  constexpr double kHour = 3600;
  return {course.pace(time, kMinutes) / full, course.pace(time, kHour) / full};
}

double likeness(const Look& a, const Look& b) {
  constexpr double kWidth = 0.1;
  const double minutes = (a.minutes - b.minutes) / kWidth;
  const double hour = (a.hour - b.hour) / (2 * kWidth);
  return std::exp(-(minutes * minutes + hour * hour) / 2);
}

Past::Past(const Course& course, const RiskQuestion& question) : course_(course), question_(question) {
  MAYFLY_CHECK(question.deadline && question.deadline->count() > 0, "the past is asked about a deadline");
  horizon_ = question.deadline->count();
  full_ = question.work / std::max(question.planned.count(), 1e-6);
  best_ = chance_of(full_ * horizon_);
  worst_ = chance_of(question.least_pace * horizon_);
  constexpr double kMostWindows = 100'000;  // two years of the shortest steps
  const double step = std::max({kMinutes, horizon_ / kWindowsPerDeadline, course.duration() / kMostWindows});
  for (double start = 0; start + horizon_ <= course.duration(); start += step) {
    const auto begin = course.at(start);
    const auto end = course.reached(start, question.work);
    windows_.push_back({.start = start,
                        .look = look_at(course, start, full_),
                        .chance = chance_of(course.at(start + horizon_).done - begin.done),
                        .end = end.value_or(kUnseen),
                        .time = end ? *end - start : kUnseen,
                        .cost = end ? course.at(*end).spent - begin.spent : kUnseen});
    by_cost_.push_back(by_cost_.size());
  }
  by_time_ = by_cost_;
  const auto sort = [&](std::vector<std::size_t>& order, double Window::* value) {
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return windows_[a].*value < windows_[b].*value; });
  };
  sort(by_cost_, &Window::cost);
  sort(by_time_, &Window::time);
}

/// That so much work is enough for the job, whose true work is e^(sd z) times the predicted one.
double Past::chance_of(double done) const {
  // The rounding of a course of days.
  if (question_.relative_sd <= 0) return done >= question_.work * (1 - 1e-9) ? 1 : 0;
  if (done <= 0) return 0;
  return std::erfc(-std::log(done / question_.work) / question_.relative_sd / std::sqrt(2.0)) / 2;
}

std::size_t Past::seen(double now) const {
  const auto after = std::upper_bound(windows_.begin(), windows_.end(), now - horizon_,
                                      [](double last, const Window& window) { return last < window.start; });
  return static_cast<std::size_t>(after - windows_.begin());
}

/// Of the windows that have ended, in windows side by side: as much as they began like now, and a little of each.
std::vector<double> Past::weights(double now) const {
  std::vector<double> weights(seen(now));
  if (weights.empty()) return weights;
  const double count = static_cast<double>(weights.size());
  const double each = side_by_side(weights.size()) / count;
  const Look look = look_at(course_, now, full_);
  for (std::size_t i = 0; i < weights.size(); ++i)
    weights[i] = each * likeness(windows_[i].look, look) + kAllAlike / count;
  return weights;
}

/// As many as fit into what the first `count` of them cover.
double Past::side_by_side(std::size_t count) const { return count == 0 ? 0 : 1 + windows_[count - 1].start / horizon_; }

double Past::in_time(Seconds now) const {
  const auto weight = weights(now.count());
  const double apart = side_by_side(weight.size());
  // The share of all windows is Jeffreys': few of them that were all kept, or all missed, are no certainty. One half of
  // a window has every machine there, the other none of the market.
  const double doubt = kAllAlike * 2 * kJeffreys / (apart + 2 * kJeffreys);
  double sum = kAsItIs + (weight.empty() ? doubt : 0);
  double kept = kAsItIs * chance_of(course_.pace(now.count(), kMinutes) * horizon_) + doubt * (best_ + worst_) / 2;
  const double alike = kAllAlike / std::max<double>(1, static_cast<double>(weight.size()));
  for (std::size_t i = 0; i < weight.size(); ++i) {
    sum += weight[i];
    kept += (weight[i] - alike * doubt / kAllAlike) * windows_[i].chance;
  }
  return kept / sum;
}

std::optional<double> Past::cost_p50(Seconds now) const {
  const double pace = course_.pace(now.count(), kMinutes);
  const double still = pace > 0 ? course_.price(now.count(), kMinutes) * question_.work / pace : kUnseen;
  return middle(now.count(), by_cost_, &Window::cost, still);
}

std::optional<double> Past::time_p50(Seconds now) const {
  const double pace = course_.pace(now.count(), kMinutes);
  return middle(now.count(), by_time_, &Window::time, pace > 0 ? question_.work / pace : kUnseen);
}

/// `still`: of a job while everything stays as it is.
std::optional<double> Past::middle(double now, const std::vector<std::size_t>& order, double Window::* value,
                                   double still) const {
  const auto weight = weights(now);
  double sum = kAsItIs;
  for (const double one : weight) sum += one;
  double passed = 0;
  bool told = false;
  for (const std::size_t i : order) {
    if (i >= weight.size() || windows_[i].end > now) continue;
    if (!told && still <= windows_[i].*value) {
      passed += kAsItIs;
      told = true;
      if (2 * passed >= sum) return still;
    }
    passed += weight[i];
    if (2 * passed >= sum) return windows_[i].*value;
  }
  if (!told && std::isfinite(still) && 2 * (passed + kAsItIs) >= sum) return still;
  return {};
}

}  // namespace mayfly
