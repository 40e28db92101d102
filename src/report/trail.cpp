#include "report/trail.h"

#include <algorithm>
#include <utility>

namespace mayfly {
namespace {

/// The gap that leaves about half of the points there may be.
double wider(double gap, double span, std::size_t most) {
  return std::max(2 * gap, 2 * span / static_cast<double>(most));
}

}  // namespace

void Trail::add(double time, double value) {
  push(time, value, true);
  if (times_.size() > most_) thin();
}

void Trail::push(double time, double value, bool keep_turns) {
  const std::size_t n = times_.size();
  if (n >= 2 && time - times_[n - 2] < gap_) {
    const bool turns = (value - values_[n - 1]) * (values_[n - 1] - values_[n - 2]) < 0;
    if (!(keep_turns && turns)) {
      times_[n - 1] = time;
      values_[n - 1] = value;
      return;
    }
  }
  times_.push_back(time);
  values_.push_back(value);
}

void Trail::thin() {
  gap_ = wider(gap_, times_.back() - times_.front(), most_);
  for (const bool keep_turns : {true, false}) {
    const auto times = std::exchange(times_, {});
    const auto values = std::exchange(values_, {});
    for (std::size_t i = 0; i < times.size(); ++i) push(times[i], values[i], keep_turns);
    if (4 * times_.size() <= 3 * most_) return;
  }
}

void Stairs::add(double time, const std::vector<double>& row) {
  if (!rows_.empty() && rows_.back() == row) return;
  const std::size_t n = times_.size();
  // The first of the steps that are joined keeps its time: what came is shown early rather than late.
  if (n >= 2 && (time <= times_[n - 1] || time - times_[n - 1] < gap_)) {
    rows_[n - 1] = row;
    return;
  }
  times_.push_back(time);
  rows_.push_back(row);
  if (times_.size() <= most_) return;
  gap_ = wider(gap_, times_.back() - times_.front(), most_);
  const auto times = std::exchange(times_, {});
  const auto rows = std::exchange(rows_, {});
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (i > 0 && times[i] - times_.back() < gap_) {
      rows_.back() = rows[i];
    } else {
      times_.push_back(times[i]);
      rows_.push_back(rows[i]);
    }
  }
}

}  // namespace mayfly
