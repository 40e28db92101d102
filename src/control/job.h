#pragma once

#include "cloud/catalog.h"
#include "predict/migration.h"

namespace mayfly {

/// Everything the weather meets: the job's shapes, what changes cost, and what machines cost.
struct Job {
  Shapes shapes;
  MigrationCosts costs;
  double global_batch = 0;
  std::string type{};
  UsdPerHour spot{};                      ///< where the trace has no prices
  std::optional<UsdPerHour> on_demand{};  ///< where it can be rented so
  UsdPerHour standing{};                  ///< of its servers, standbys included, as long as it trains
};

struct JobRequest {
  std::string type{};  ///< empty: the profile's own
  /// For jobs without measured shapes: what its machines are a mixture of. Empty: of one type.
  std::vector<MachineCount> mix{};
  std::optional<Seconds> recovery{};  ///< what a change costs, instead of what the profile says
  MachineCount servers{};             ///< standbys included; without a type: one of the profile's, or the catalogue's
  int least_machines = 1;             ///< below which such a job does not train
  int most_machines = 0;              ///< for jobs without measured shapes: how wide they may grow
  bool uneven = false;                ///< pipelines of two depths, so that no machine idles
  MigrationOptions migration{};
};

/// A pipeline profile brings its shapes and costs. Any other job is data parallel: one stage, as wide as there are
/// machines, at the speed predicted for as many of the mixture, and each change costs the profile's `recovery_s`.
Result<Job> make_job(const Profile& profile, const Catalog& catalog, const JobRequest& request);

/// Of a job without a measurement: each further machine is worth as much as the first. Speeds are in units of one
/// machine's, so nothing can be said of times.
Job unmeasured_job(int most_machines);

}  // namespace mayfly
