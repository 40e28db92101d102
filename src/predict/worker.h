#pragma once

#include <map>
#include <string>

#include "cloud/catalog.h"
#include "predict/speed.h"

namespace mayfly {

/// How a machine of this type does this job: measured there, or scaled from the nearest measurement (same GPU first,
/// then by peak FLOPS), or, for a job without a measurement, by the step-time regression. The error says what is
/// missing.
Result<Worker> make_worker(const Profile& profile, const InstanceType& type, const Catalog& catalog);

/// The job's side. `sync` overrides the profile's. The result points into the profile.
Workload make_workload(const Profile& profile, std::optional<Sync> sync = {});

/// `count` servers of this type; the profile's measured rate wins over the catalogue's for the profile's own server
/// type.
ServerPool make_servers(const Profile& profile, const InstanceType& type, int count);

/// Relative error (sd of the logarithm) of a step time scaled by peak FLOPS: 28 pairs of measured machines,
/// docs/models.md#unmeasured-machines.
inline constexpr double kFlopsScalingSd = 0.14;
/// The same for machines of two kinds, a processor's cores and GPUs, or cores of two machines: a factor of two either
/// way. An assumption without a measurement, wide so that it is not relied on.
inline constexpr double kUnlikeScalingSd = 0.69;

}  // namespace mayfly
