#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "base/units.h"

namespace mayfly {

/// How a worker trains together with others: in a mesh, or by way of servers. A worker has every way at hand, and is in
/// a formation of one at most: the one whose word begins it takes over from the rest.
class Teamwork {
 public:
  virtual ~Teamwork() = default;

  /// It has its place in this formation, and can be given steps.
  virtual bool stands(std::int64_t formation) const = 0;
  /// Leaves this formation and all before it. Weights, and a step in hand whose word is awaited, stay.
  virtual void halt(std::int64_t formation) = 0;
  /// Leaves whatever formation it is in and forgets it, with the step in hand.
  virtual void retire() = 0;

  /// The fastest of a few exchanges of so many bytes, with all workers of the formation: each must be asked for the
  /// same.
  virtual Result<Seconds> exchange_time(std::int64_t bytes) = 0;
  /// Where several hold the same state, at which place this worker would save it. None: it is not with the workers.
  virtual std::optional<int> turn_to_save() const = 0;
};

}  // namespace mayfly
