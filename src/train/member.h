#pragma once

#include "base/result.h"
#include "train/line.h"

namespace mayfly {

/// A process that does what a controller says, in one thread.
class Member {
 public:
  /// Exit codes of the process.
  static constexpr int kDone = 0, kRejected = 1, kUnable = 2, kOrphaned = 3;

  /// Until told to leave. Returns the exit code.
  int run();

 protected:
  ~Member() = default;

  virtual Line& line() = 0;
  /// An error: it cannot go on at all.
  virtual Result<void> obey(const ToMember& message) = 0;
  /// The controller does not know it any more: it starts again as a newcomer.
  virtual void drop() = 0;
  /// The controller is gone for good.
  virtual void save_what_it_has() = 0;
  /// It cannot go on itself.
  virtual void save_what_others_lack() {}
  /// Before it leaves in good order.
  virtual void finish() = 0;
};

}  // namespace mayfly
