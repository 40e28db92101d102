#pragma once

#include <map>
#include <optional>
#include <string>

#include "control/event.h"
#include "wire/message.h"

namespace mayfly {

/// Whether the workers of a mesh still hold the same: when to ask them, which is seldom enough to cost next to nothing,
/// and what their answers tell.
class Comparison {
 public:
  /// Others stand together, or the same anew: they are asked at once.
  void restart() { next_ = Seconds(0); }
  bool due() const { return next_.count() <= 0; }
  /// A step whose reports are all in. How states differ, where they were asked for and do.
  std::optional<std::string> saw(const std::map<WorkerId, StepDone>& reports);

 private:
  Seconds next_{};                        ///< of training, until they are asked
  bool known_ = false;                    ///< what it costs
  std::optional<std::int64_t> agreed_{};  ///< sample at which they last did
};

}  // namespace mayfly
