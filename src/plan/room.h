#pragma once

#include <optional>
#include <string>

#include "plan/places.h"
#include "predict/memory.h"

namespace mayfly {

/// Which types have GPUs with memory enough for the job, and for how much of a step.
class Room {
 public:
  /// Both must outlive it.
  Room(const Profile& profile, const Catalog& catalog) : profile_(profile), catalog_(catalog) {}

  /// True, and remembered, where it does not fit: of a shared step, not even a small part.
  bool lacks(const InstanceType& type, const Worker& worker);
  /// Samples of a shared step that a machine has room for; more than it has where that is no matter.
  double most_share(const InstanceType& type, const Worker& worker) const;

  int left_out() const { return count_; }
  /// "12 types left out: they need 109 GB of a GPU's memory and have at most 51 (L40S-48GB); it would fit with ..."
  /// Requires one that was.
  std::string text() const;

 private:
  bool shares() const;
  double step(const Worker& worker) const { return profile_.batch.value_or(worker.batch); }
  bool has_room(const InstanceType& type, double batch) const;

  const Profile& profile_;
  const Catalog& catalog_;
  int count_ = 0;
  const InstanceType* largest_ = nullptr;  ///< of those left out
  double need_ = 0;
  double batch_ = 0;
};

/// Memory where it is tightest among a cluster's machines, and the share of all its GPUs' peak that they reach (MFU).
struct Strain {
  std::optional<MemoryFit> memory{};
  std::optional<double> peak_share{};
};
Strain strain_of(const PlanOption& option, const Problem& problem, const Candidate& candidate, const Catalog& catalog,
                 const Speed& speed);

}  // namespace mayfly
