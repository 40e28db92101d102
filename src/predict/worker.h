#pragma once

#include <map>
#include <string>

#include "cloud/catalog.h"
#include "predict/gpu_links.h"
#include "predict/speed.h"

namespace mayfly {

/// How a machine of this type does this job: measured there, or scaled from a measurement (of the same GPU first, then
/// by gpu_ratio), or, for a job without a measurement, by the step-time regression. The error says what is missing, or
/// that the answer would be above what the hardware can do.
Result<Worker> make_worker(const Profile& profile, const InstanceType& type, const Catalog& catalog);

/// 10^12 operations per second at the dense peak of a machine's GPUs and the job's precision; nothing without GPUs.
std::optional<double> machine_peak(const Profile& profile, const InstanceType& type);

/// Gradients among the GPUs of one machine, for rings: as measured in this job, else by what connects them. None where
/// it has one GPU, or the gradients' size is not known.
std::optional<GpuLinks> links_among(const Profile& profile, const InstanceType& type);
/// What GPUs of a machine send each other: half precision where the job computes in it and its parameters are counted.
/// Requires the gradients' size.
double gradient_bytes(const Profile& profile);
/// Samples of different sizes, so that the GPUs of a step take unlike times.
bool uneven(const Profile& profile);

/// The same job with another exchange of gradients: what it was measured with is taken out of the measured steps.
Profile exchanging(const Profile& profile, Exchange exchange, const Catalog& catalog);

/// The job's side. Points into the profile.
Workload make_workload(const Profile& profile);

/// `count` servers of this type; the profile's measured rate wins over the catalogue's for the profile's own server
/// type.
ServerPool make_servers(const Profile& profile, const InstanceType& type, int count);

/// Relative error (sd of the logarithm) of a step time scaled by peak FP32 FLOPS alone, where no more is known of a
/// GPU: of published pairs 8 of 10 lie within a factor of 3.45 (docs/models.md#gpus).
inline constexpr double kFlopsScalingSd = 0.97;
/// Likewise for machines of two kinds, a processor's cores and GPUs, or cores of two machines: a factor of two either
/// way. An assumption without a measurement, wide so that it is not relied on.
inline constexpr double kUnlikeScalingSd = 0.69;

}  // namespace mayfly
