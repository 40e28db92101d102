#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <vector>

#include "base/result.h"

namespace mayfly {

/// One worker's part of an update.
struct PushBuffer {
  std::unique_ptr<float[]> values{};
  std::size_t size = 0;
  std::span<float> span() const { return {values.get(), size}; }
};

/// Whole pushes that wait to count, by lease, and the memory for them, which is used again: to touch new memory costs
/// more than to receive into it. Any thread.
class Staging {
 public:
  /// Forgets everything; pushes of this formation have this many floats.
  void begin(std::int64_t formation, std::size_t size);
  /// To be filled; what it holds is not defined.
  PushBuffer buffer();
  void give_back(PushBuffer buffer);

  /// All of a lease is here. False: of another formation than the present one. A lease that was forgotten meanwhile is
  /// dropped.
  bool keep(std::int64_t formation, std::int64_t lease, PushBuffer push);
  /// In the order of the leases. Where one is not staged nothing changes.
  Result<std::vector<PushBuffer>> take(std::span<const std::int64_t> leases);
  /// Those that are not here yet are dropped when they come.
  void forget(std::span<const std::int64_t> leases);

 private:
  void give_back_locked(PushBuffer buffer);

  std::mutex mutex_{};
  std::int64_t formation_ = -1;
  std::size_t size_ = 0;
  std::map<std::int64_t, PushBuffer> staged_{};
  std::set<std::int64_t> unwanted_{};  ///< forgotten before they came
  std::vector<PushBuffer> free_{};     ///< all of size_
};

}  // namespace mayfly
