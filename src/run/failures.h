#pragma once

#include <cstdint>
#include <map>

namespace mayfly {

/// Failures of workers by the place of the training where they happened: what fails three times at one place, or three
/// times with no step in between, will fail the next time as well. That samples were trained again up to there changes
/// nothing about it. Lost machines are no failures.
class Failures {
 public:
  /// One more at this place. True: it is time to give up.
  bool add(std::int64_t place) { return ++in_a_row_ >= kEnough || ++at_[place] >= kEnough; }
  /// A step counts.
  void step() { in_a_row_ = 0; }

 private:
  static constexpr int kEnough = 3;
  std::map<std::int64_t, int> at_{};
  int in_a_row_ = 0;
};

}  // namespace mayfly
