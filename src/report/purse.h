#pragma once

#include <optional>

#include "job/job_spec.h"
#include "plan/bill.h"
#include "report/plan_json.h"

namespace mayfly {

/// What a job pays beside its machines while they train.
class Purse {
 public:
  /// `profile` and `catalog` must outlive it. `boot`: of a machine.
  Purse(const Profile& profile, const JobSpec& job, const Catalog& catalog, Tariffs tariffs, Seconds boot);

  /// Lets the request count it: what machines are paid before they train, and what plans cost besides. The purse must
  /// outlive the request.
  void charge(PlanRequest& request) const;

  /// Of the plan, the weather in its first part, so that all known parts are the plan's cost: that of running machines
  /// is in the first, too. Nothing for functions.
  std::optional<Bill> bill(const PlanContext& context, const Plan& plan) const;

 private:
  Usd beside(const PlanOption& option, const std::vector<MachineCount>& running) const;
  Bill bill_of(const PlanOption& option, const std::vector<MachineCount>& running) const;

  const Profile* profile_;
  const Catalog* catalog_;
  Freight freight_;
  Tariffs tariffs_;
  Seconds boot_;
};

}  // namespace mayfly
