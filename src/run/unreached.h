#pragma once

#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "control/event.h"

namespace mayfly {

/// Pairs of members of which one says that it cannot reach the other. Who is at fault nobody knows; that most of them
/// can train without a few, everybody.
class Unreached {
 public:
  void clear() { pairs_.clear(), reporters_.clear(); }
  bool empty() const { return pairs_.empty(); }
  void add(WorkerId from, WorkerId to);
  /// It has said whom it cannot reach.
  bool reported(WorkerId worker) const { return reporters_.contains(worker); }
  void remove(WorkerId worker);
  /// Without these, all others reach each other: those whose worth together is least.
  std::vector<WorkerId> cheapest(const std::function<double(WorkerId)>& worth) const;

 private:
  std::set<std::pair<WorkerId, WorkerId>> pairs_{};  ///< the smaller name first
  std::set<WorkerId> reporters_{};
};

}  // namespace mayfly
