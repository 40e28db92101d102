#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"

namespace mayfly {

/// Places [first, first + count) of a run's sample order.
struct SampleRange {
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::int64_t end() const { return first + count; }
  bool operator==(const SampleRange&) const = default;
};

/// Which samples of a run have been trained. Ranges are leased, then committed with the update that used them or given
/// back; nothing is leased twice at a time and nothing committed twice. Part of every checkpoint.
class Ledger {
 public:
  Ledger() = default;
  /// From a checkpoint. Ranges must be sorted, apart and not empty.
  static Result<Ledger> restored(std::vector<SampleRange> committed);

  /// The first `most` samples that are neither committed nor leased, below `end`; fewer where a gap or the end is
  /// nearer, none where nothing is left.
  SampleRange lease(std::int64_t most, std::int64_t end);
  /// False, and nothing changes, unless exactly this range is leased.
  bool commit(SampleRange range);
  bool give_back(SampleRange range);
  /// Every lease that is out returns to the pool.
  void give_back_all();

  const std::vector<SampleRange>& committed() const { return committed_; }
  const std::vector<SampleRange>& leased() const { return leased_; }
  /// Committed samples.
  std::int64_t samples() const;
  /// The first place that is not committed.
  std::int64_t frontier() const;

 private:
  std::vector<SampleRange> committed_{};  ///< sorted, apart
  std::vector<SampleRange> leased_{};     ///< sorted
};

}  // namespace mayfly
