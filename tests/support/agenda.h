#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "base/units.h"

namespace mayfly::support {

/// Simulated time: what happens is ordered by time, then by when it was put down.
class Agenda {
 public:
  Seconds now() const { return now_; }
  void at(Seconds time, std::function<void()> what) {
    happenings_.emplace(std::pair(std::max(now_, time), ++number_), std::move(what));
  }
  void after(Seconds time, std::function<void()> what) { at(now_ + time, std::move(what)); }
  /// False where nothing is left before `end`; then it is `end`.
  bool next(Seconds end) {
    if (happenings_.empty() || happenings_.begin()->first.first > end) {
      now_ = std::max(now_, end);
      return false;
    }
    auto happening = happenings_.extract(happenings_.begin());
    now_ = happening.key().first;
    happening.mapped()();
    return true;
  }

 private:
  Seconds now_{};
  int number_ = 0;
  std::map<std::pair<Seconds, int>, std::function<void()>> happenings_{};
};

}  // namespace mayfly::support
