#pragma once

namespace mayfly {

/// Something in which a thread may wait for others.
class Abortable {
 public:
  virtual ~Abortable() = default;
  /// From any thread, at any time: blocked calls return an error at once, later ones too.
  virtual void abort() = 0;
};

}  // namespace mayfly
