#include "predict/worker.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "predict/fabric.h"
#include "predict/gpu_links.h"
#include "predict/gpu_ratio.h"
#include "predict/regression.h"

namespace mayfly {
namespace {

/// Alone and batch of one machine before links and loader are looked at.
struct Alone {
  double compute = 0;
  double batch = 0;
  double fixed = 0;  ///< share of `compute` that fewer samples do not shorten
  double relative_sd = 0;
  Basis basis = Basis::given;
};

/// Speed grows with the batch to this power, as far as published runs tell (docs/models.md#gpus): about the measured
/// batch a step is then this share of itself, whatever its samples, and the rest in proportion to them.
constexpr double kBatchPower = 0.103;

/// The same from several batches measured on one machine: a line through the times of computing.
double fixed_share(const TypeProfile& measured, bool gpu) {
  double count = 0, x = 0, y = 0, xx = 0, xy = 0;
  for (const BatchPoint& point : measured.batches) {
    if (!point.compute || point.batch > measured.batch) continue;
    const double batch = point.batch / measured.batch;
    const double time = point.compute->count();
    count += 1, x += batch, y += time, xx += batch * batch, xy += batch * time;
  }
  const double spread = count * xx - x * x;
  if (count < 2 || spread <= 0) return gpu ? kBatchPower : 0;
  const double slope = (count * xy - x * y) / spread;
  const double fixed = (y - slope * x) / count;
  constexpr double kMost = 0.95;  // something always depends on the samples
  return fixed + slope > 0 ? std::clamp(fixed / (fixed + slope), 0.0, kMost) : kMost;
}

Network network_of_job(const Profile& profile) {
  return profile.recipe.network == Network::unknown ? network_called(profile.model) : profile.recipe.network;
}

double pcie_time(const Profile& profile, const InstanceType& type) {
  const auto rate = profile.link.pcie ? profile.link.pcie : type.pcie;
  // Without a figure the copy between GPU and host counts as part of the measured compute.
  if (!rate || type.gpu_count == 0 || !profile.parameters) return 0;
  return 2 * type.gpu_count * profile.parameters->value / rate->value;
}

double own_network(const Profile& profile, const InstanceType& type) {
  const auto measured = profile.types.find(type.name);
  if (measured != profile.types.end() && measured->second.network) return measured->second.network->value;
  return type.usable_network().value_or(BytesPerSecond{0}).value;
}

/// Rate towards an idle server: what the job was seen to draw, but never more than the link carries.
double request_rate(const Profile& profile, double nic) {
  if (!profile.link.request) return nic;
  return nic > 0 ? std::min(nic, profile.link.request->value) : profile.link.request->value;
}

/// Of the dense peak of a machine's GPUs, what so many samples a second take.
std::optional<double> share_of_peak(const Profile& profile, const InstanceType& type, double samples_per_s) {
  const auto work = profile.recipe.work();
  const auto peak = machine_peak(profile, type);
  return work && peak ? std::optional(*work * samples_per_s / *peak) : std::nullopt;
}

/// Of machines with GPUs, unless the link between machines was measured in this job.
std::optional<RingLinks> links_between(const Profile& profile, const InstanceType& type) {
  const bool measured = profile.link.latency.count() > 0 || profile.link.overlap > 0;
  if (profile.exchange != Exchange::all_reduce || type.gpu_count == 0 || !profile.parameters || measured)
    return std::nullopt;
  RingJob job{.gradient_bytes = gradient_bytes(profile), .uneven = uneven(profile), .shard = profile.recipe.shard};
  const auto known = profile.types.find(type.name);
  if (known != profile.types.end() && known->second.network) job.measured_rate = known->second.network->value;
  return ring_links(type, job);
}

Result<Alone> measured_alone(const Profile& profile, const InstanceType& type, const TypeProfile& measured) {
  Alone alone{.batch = measured.batch,
              .fixed = fixed_share(measured, type.gpu.has_value()),
              .relative_sd = measured.relative_sd,
              .basis = measured.basis};
  if (measured.compute) {
    alone.compute = measured.compute->count();
    return alone;
  }
  double exchange = 0;
  if (profile.parameters && profile.exchange == Exchange::server) {
    const double rate = request_rate(profile, own_network(profile, type));
    if (rate > 0) exchange = 2 * profile.parameters->value / rate;
  }
  // The measured step holds what this machine did besides computing: its own exchange and copies, or its own ring.
  const double step = measured.step->count();
  if (const auto links = links_among(profile, type)) {
    alone.compute = time_alone(step, type.gpu_count, gradient_bytes(profile), *links, uneven(profile));
    // What links take is estimated; what the GPUs can do is not. So no more of the step is taken for the exchange.
    const auto share = share_of_peak(profile, type, measured.batch / step);
    const double best = best_published_share(profile.recipe.precision.value_or(Precision::fp32));
    if (share && *share <= best) alone.compute = std::max(alone.compute, step * *share / best);
  } else {
    alone.compute = step - exchange - (profile.exchange == Exchange::server ? pcie_time(profile, type) : 0);
  }
  if (alone.compute <= 0) {
    return fail("profile '{}': the step of {:.4g} s on {} is shorter than its own exchange of {:.4g} s", profile.name,
                step, type.name, step - alone.compute);
  }
  return alone;
}

constexpr double kMostBatchRatio = 8;

bool has_speed(const TypeProfile& measured) { return measured.step || measured.compute; }

Result<double> batch_by_memory(const Profile& profile, const InstanceType& type) {
  const BatchFit& fit = *profile.batch_fit;
  const double samples = fit.samples_per_mb * type.gpu->memory_gib * 1024 + fit.offset;
  // A fit is of the GPUs that it was made from; towards smaller ones it may turn negative.
  if (!(samples >= 1))
    return fail("profile '{}': batch_fit gives {:.4g} samples to a GPU of {:g} GiB ({}), want at least 1", profile.name,
                samples, type.gpu->memory_gib, type.name);
  return std::exp2(std::floor(std::log2(samples)));
}

/// The host sets the pace, as far as can be told from where the job was measured.
bool waits_for_host(const Profile& profile, const InstanceType& type, const Alone& alone) {
  const auto share = share_of_peak(profile, type, alone.batch / alone.compute);
  return share && *share < kHostBoundShare && alone.batch / type.gpu_count <= kHostBoundBatch;
}

/// How much faster than the measured machine's GPU, which needs `alone` there, another one is: by what is known of
/// both; by their FP32 peaks where that is all.
std::optional<GpuRatio> ratio_between(const InstanceType& from, const Alone& alone, const Gpu& to,
                                      const Profile& profile) {
  Recipe recipe = profile.recipe;
  recipe.network = network_of_job(profile);
  auto ratio = gpu_ratio(*from.gpu, to, recipe);
  if (!ratio && from.gpu->tflops_fp32 && to.tflops_fp32)
    ratio = GpuRatio{.speed = *to.tflops_fp32 / *from.gpu->tflops_fp32, .relative_sd = kFlopsScalingSd};
  const bool same = from.gpu->model == to.model;
  return ratio && !same && waits_for_host(profile, from, alone) ? host_bound(*ratio) : ratio;
}

/// An error above the share of its GPUs' peak that the best published runs reach.
Result<void> believable(const Profile& profile, const InstanceType& type, double samples_per_s, Basis basis) {
  const auto share = share_of_peak(profile, type, samples_per_s);
  const Precision precision = profile.recipe.precision.value_or(Precision::fp32);
  const double best = best_published_share(precision);
  if (!share || *share <= best) return {};
  if (basis == Basis::scaled)
    return fail(
        "profile '{}' on {}: scaled from another machine it would reach {:.0f} % of the {} peak, and the best "
        "published runs reach {:.0f} %",
        profile.name, type.name, 100 * *share, name(precision), 100 * best);
  return fail(
      "profile '{}' on {}: {:.0f} % of the {} peak of its GPUs, and the best published runs reach {:.0f} %: "
      "job.tflop_per_sample ({:.4g}), job.precision or the measurement cannot be right",
      profile.name, type.name, 100 * *share, name(precision), 100 * best, *profile.recipe.work());
}

/// What was measured there can be scaled from.
Result<Alone> reference_alone(const Profile& profile, const InstanceType& type, const TypeProfile& measured) {
  const Precision precision = profile.recipe.precision.value_or(Precision::fp32);
  if (!has_precision(*type.gpu, precision))
    return fail("profile '{}': {} of {} has no {}: what was measured there cannot be scaled", profile.name,
                type.gpu->model, type.name, name(precision));
  auto alone = measured_alone(profile, type, measured);
  if (!alone) return alone;
  if (const auto fine = believable(profile, type, alone->batch / alone->compute, alone->basis); !fine)
    return unexpected(fine.error());
  return alone;
}

/// Scaled from the measured machine that tells most: with the same GPU, and the number of them nearest; else with the
/// GPU that the ratio is known best to.
Result<Alone> scaled_alone(const Profile& profile, const InstanceType& type, const Catalog& catalog) {
  const Precision precision = profile.recipe.precision.value_or(Precision::fp32);
  if (type.gpu && !has_precision(*type.gpu, precision))
    return fail("{} of {} has no {}", type.gpu->model, type.name, name(precision));
  std::optional<Alone> alone;
  std::optional<Error> unusable;
  std::string unknown;
  double doubt = std::numeric_limits<double>::infinity();
  for (const auto& [reference_name, measured] : profile.types) {
    const InstanceType* reference = catalog.find(reference_name);
    if (has_speed(measured) && reference == nullptr) unknown = reference_name;
    if (!has_speed(measured) || reference == nullptr || !reference->gpu || !type.gpu) continue;
    const auto own = reference_alone(profile, *reference, measured);
    if (!own) {
      unusable = own.error();
      continue;
    }
    const auto ratio = ratio_between(*reference, *own, *type.gpu, profile);
    if (!ratio) continue;
    const double apart = std::fabs(std::log(static_cast<double>(reference->gpu_count) / type.gpu_count));
    const double here = ratio->relative_sd + measured.relative_sd + 1e-3 * apart;
    if (here >= doubt) continue;
    doubt = here;
    alone = Alone{.compute = own->compute / ratio->speed,
                  .batch = own->batch / reference->gpu_count * type.gpu_count,
                  .fixed = own->fixed,
                  .relative_sd = std::hypot(own->relative_sd, ratio->relative_sd),
                  .basis = Basis::scaled};
  }
  if (!alone && unusable) return unexpected(*unusable);
  if (!alone && type.gpu && !unknown.empty() && unknown != "local")
    return fail(
        "profile '{}' has no measurement on {}, and that on {} cannot be scaled: the type is not in catalogue '{}'; "
        "several catalogues can be named, as in --catalog default,mine.yaml",
        profile.name, type.name, unknown, catalog.name);
  if (!alone) return fail("profile '{}' has no measurement on {} and none to scale from", profile.name, type.name);
  // A batch without a speed says how many samples it will be given there: more are a little faster each.
  const auto own = profile.types.find(type.name);
  if (own != profile.types.end() && own->second.batch > 0) {
    const double more = own->second.batch / alone->batch;
    alone->compute *= more / std::pow(std::clamp(more, 1 / kMostBatchRatio, kMostBatchRatio), kBatchPower);
    alone->batch = own->second.batch;
  } else if (profile.batch_fit) {
    const auto each = batch_by_memory(profile, type);
    if (!each) return unexpected(each.error());
    const double batch = *each * type.gpu_count;
    alone->compute *= batch / alone->batch;
    alone->batch = batch;
  }
  return *alone;
}

/// From a machine without a GPU, such as the one that a job was profiled on: by what it reaches multiplying matrices
/// against a GPU's peak, or by the cores.
std::optional<Alone> pace_from_cores(const Profile& profile, const InstanceType& type, const Catalog& catalog) {
  for (const auto& [reference_name, measured] : profile.types) {
    const InstanceType* reference = catalog.find(reference_name);
    if (!measured.compute || (reference != nullptr && reference->gpu)) continue;
    Alone alone{.compute = measured.compute->count(),
                .batch = measured.batch,
                .fixed = fixed_share(measured, false),
                .relative_sd = std::hypot(measured.relative_sd, kUnlikeScalingSd),
                .basis = Basis::scaled};
    if (type.gpu && type.gpu->tflops_fp32 && measured.gflops) {
      alone.compute *= *measured.gflops / (1e3 * *type.gpu->tflops_fp32);
      alone.batch *= type.gpu_count;
      return alone;
    }
    if (!type.gpu && measured.cores && type.vcpus > 0) {
      alone.compute *= *measured.cores / type.vcpus;
      return alone;
    }
  }
  return {};
}

std::optional<Alone> regressed_alone(const Profile& profile, const InstanceType& type) {
  if (!profile.gflops || !profile.tensors || !type.gpu || !type.gpu->tflops_fp32) return {};
  const auto& fit = published_step_time_fit();
  const double step = step_time(fit, *profile.gflops, *profile.tensors, *type.gpu->tflops_fp32);
  if (step <= 0) return {};
  return Alone{
      .compute = step, .batch = fit.batch * type.gpu_count, .relative_sd = fit.relative_sd, .basis = Basis::scaled};
}

Interconnect interconnect_of(const Profile& profile, const InstanceType& type, const GpuLinks& links, double compute) {
  const ExchangeTime parts =
      exchange_among_gpus(compute, type.gpu_count, gradient_bytes(profile), links, uneven(profile));
  const GpuLinkFit fit;
  return {.always = parts.latency + parts.traffic,
          .waiting = parts.waiting / compute,
          .hideable = links.overlaps ? (1 - fit.unhidden) * parts.traffic : 0,
          .hides = fit.hides};
}

void apply_loader(const LoaderProfile& loader, const InstanceType& type, Worker& worker) {
  if (loader.prep_samples_per_s_per_vcpu) {
    const double prep = worker.batch / (*loader.prep_samples_per_s_per_vcpu * type.vcpus);
    if (prep > worker.compute) {
      worker.compute = prep;
      worker.fixed = 0;
      worker.compute_part = Part::prep;
    }
  }
  if (loader.fetch_samples_per_s) {
    const double fetch = worker.batch / *loader.fetch_samples_per_s;
    if (fetch > worker.compute) {
      worker.compute = fetch;
      worker.fixed = 0;
      worker.compute_part = Part::fetch;
    }
  }
}

}  // namespace

std::optional<GpuLinks> links_among(const Profile& profile, const InstanceType& type) {
  if (profile.exchange != Exchange::all_reduce || type.gpu_count < 2 || !profile.parameters) return std::nullopt;
  if (type.nvlink || !profile.link.pcie) {
    GpuLinks links = gpu_links(type);
    if (uneven(profile)) links.relative_sd += uneven_sd(type.gpu_count);
    return links;
  }
  // Measured in this job: no share of it is left to guess.
  return GpuLinks{.kind = GpuLinkKind::measured, .bus = profile.link.pcie->value};
}

double gradient_bytes(const Profile& profile) {
  const Recipe& recipe = profile.recipe;
  const bool half = recipe.parameters && is_half(recipe.precision.value_or(Precision::fp32));
  return half ? std::min(2 * *recipe.parameters, profile.parameters->value) : profile.parameters->value;
}

bool uneven(const Profile& profile) { return network_of_job(profile) == Network::audio; }

std::optional<double> machine_peak(const Profile& profile, const InstanceType& type) {
  if (!type.gpu || type.gpu_count == 0) return std::nullopt;
  const auto peak = peak_tflops(*type.gpu, profile.recipe.precision.value_or(Precision::fp32));
  return peak ? std::optional(*peak * type.gpu_count) : std::nullopt;
}

Result<Worker> make_worker(const Profile& profile, const InstanceType& type, const Catalog& catalog) {
  Worker worker;
  const auto measured = profile.types.find(type.name);
  const bool known = measured != profile.types.end();
  if (known && measured->second.gflops) worker.gflops = *measured->second.gflops;
  worker.nic = own_network(profile, type);
  worker.rate = request_rate(profile, worker.nic);
  worker.basis = profile.origin.basis;
  if (profile.exchange == Exchange::pipeline) {
    if (type.name != profile.pipeline->type) {
      return fail("profile '{}' has pipeline speeds for {} only, not {}", profile.name, profile.pipeline->type,
                  type.name);
    }
    worker.batch = profile.pipeline->global_batch;
    return worker;
  }
  const bool cynthia_only = profile.cynthia && worker.gflops > 0 && !(known && has_speed(measured->second));
  if (cynthia_only) {
    // Cynthia counts work, not samples; its compute time on one machine serves the other predictors too.
    worker.compute = profile.cynthia->work_gflop / worker.gflops;
    worker.batch = measured->second.batch > 0 ? measured->second.batch : 1;
  } else {
    auto alone = known && has_speed(measured->second) ? measured_alone(profile, type, measured->second)
                                                      : scaled_alone(profile, type, catalog);
    if (!alone && !(known && has_speed(measured->second))) {
      auto other = pace_from_cores(profile, type, catalog);
      if (!other) other = regressed_alone(profile, type);
      if (other) alone = *other;
    }
    if (!alone) return unexpected(alone.error());
    worker.compute = alone->compute;
    worker.batch = alone->batch;
    worker.fixed = alone->fixed * alone->compute;
    worker.relative_sd = alone->relative_sd;
    worker.basis = alone->basis;
  }
  // Without a barrier a worker's step has the job's batch on every machine.
  if (profile.sync == Sync::asp && profile.batch) {
    worker.compute = worker.fixed + (worker.compute - worker.fixed) * *profile.batch / worker.batch;
    worker.batch = *profile.batch;
  }
  if (const auto fine = believable(profile, type, worker.batch / worker.compute, worker.basis); !fine)
    return unexpected(fine.error());
  worker.pcie = profile.exchange == Exchange::server ? pcie_time(profile, type) : 0;
  if (const auto links = links_among(profile, type)) {
    worker.interconnect = interconnect_of(profile, type, *links, worker.compute);
    // A measurement of this very machine holds what its links do.
    if (worker.basis == Basis::scaled) worker.relative_sd = std::hypot(worker.relative_sd, links->relative_sd);
  }
  worker.ring = links_between(profile, type);
  const double gpus = worker.compute;
  apply_loader(profile.loader, type, worker);
  // Where the loader sets the pace, GPUs compute for a part of it.
  worker.interconnect.waiting *= gpus / worker.compute;
  worker.interconnect.hides *= gpus / worker.compute;
  // Towards a server only the rate counts (Cynthia's model apart); machines that differ in the rest of their link are
  // alike.
  if (profile.exchange == Exchange::server && (worker.nic <= 0 || !profile.cynthia)) worker.nic = worker.rate;
  // One machine has nobody to reduce with; several whose network is unknown have no speed.
  if (worker.nic <= 0 && profile.exchange != Exchange::all_reduce) {
    return fail("the network of {} is not in catalogue '{}', and profile '{}' has no {}", type.name, catalog.name,
                profile.name, "link.request_mb_per_s");
  }
  return worker;
}

Profile exchanging(const Profile& profile, Exchange exchange, const Catalog& catalog) {
  Profile other = profile;
  other.exchange = exchange;
  for (auto& [name, measured] : other.types) {
    const InstanceType* type = catalog.find(name);
    if (measured.compute || !measured.step || type == nullptr) continue;
    if (const auto alone = measured_alone(profile, *type, measured)) measured.compute = Seconds(alone->compute);
  }
  return other;
}

Workload make_workload(const Profile& profile) {
  Workload job{.sync = profile.sync, .exchange = profile.exchange};
  job.parameters = profile.parameters ? profile.parameters->value : 0;
  job.tensors = profile.tensors.value_or(1);
  job.latency = profile.link.latency.count();
  job.overlap = profile.link.overlap;
  job.server_cpu = profile.server.cpu ? profile.server.cpu->count() : 0;
  job.server_demand = profile.server.demand ? profile.server.demand->count() : 0;
  job.in_turn = profile.server.in_turn;
  job.contention = profile.contention;
  job.cynthia = profile.cynthia;
  job.global_batch = profile.batch.value_or(0);
  job.scale_batch = profile.scale_batch;
  job.most_batch = profile.most_batch;
  if (profile.pipeline) {
    job.shapes = profile.pipeline->speeds;
    job.global_batch = profile.pipeline->global_batch;
  }
  return job;
}

ServerPool make_servers(const Profile& profile, const InstanceType& type, int count) {
  ServerPool servers{.count = count, .nic = own_network(profile, type), .cores = type.vcpus};
  if (profile.server.network && (profile.server.type.empty() || profile.server.type == type.name)) {
    servers.nic = profile.server.network->value;
  }
  const auto known = profile.types.find(type.name);
  if (known != profile.types.end() && known->second.gflops) servers.gflops = *known->second.gflops;
  return servers;
}

}  // namespace mayfly
