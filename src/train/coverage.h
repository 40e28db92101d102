#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "nn/shard.h"

namespace mayfly {

/// Which parts of a range are done; each is done once.
class Coverage {
 public:
  explicit Coverage(ShardRange whole) : whole_(whole) {}
  /// False, and nothing changes, where it reaches outside or some of it is done already.
  bool add(ShardRange part);
  bool complete() const { return covered_ == whole_.count; }
  std::vector<ShardRange> missing() const;

 private:
  ShardRange whole_;
  std::size_t covered_ = 0;
  std::map<std::size_t, std::size_t> parts_{};  ///< first -> end; apart
};

/// What two ranges have in common.
ShardRange common_part(ShardRange a, ShardRange b);

}  // namespace mayfly
