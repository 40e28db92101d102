#include "predict/worker.h"

#include <cmath>
#include <limits>

#include "predict/regression.h"

namespace mayfly {
namespace {

/// Alone and batch of one machine before links and loader are looked at.
struct Alone {
  double compute = 0;
  double batch = 0;
  double relative_sd = 0;
  Basis basis = Basis::given;
};

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

/// Gradients among the GPUs of one machine, for rings: the fastest link that connects them.
double interconnect_time(const Profile& profile, const InstanceType& type) {
  if (profile.exchange != Exchange::all_reduce || type.gpu_count < 2 || !profile.parameters) return 0;
  const auto link = type.nvlink ? type.nvlink : profile.link.pcie ? profile.link.pcie : type.pcie;
  if (!link) return 0;
  return 2.0 * (type.gpu_count - 1) / type.gpu_count * profile.parameters->value / link->value;
}

Result<Alone> measured_alone(const Profile& profile, const InstanceType& type, const TypeProfile& measured) {
  Alone alone{.batch = measured.batch, .relative_sd = measured.relative_sd, .basis = measured.basis};
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
  const double local =
      profile.exchange == Exchange::server ? pcie_time(profile, type) : interconnect_time(profile, type);
  alone.compute = measured.step->count() - exchange - local;
  if (alone.compute <= 0) {
    return fail("profile '{}': the step of {:.4g} s on {} is shorter than its own exchange of {:.4g} s", profile.name,
                measured.step->count(), type.name, exchange + local);
  }
  return alone;
}

bool has_speed(const TypeProfile& measured) { return measured.step || measured.compute; }

double batch_by_memory(const BatchFit& fit, const Gpu& gpu) {
  const double memory_mb = gpu.memory_gib * 1024;
  return std::exp2(std::floor(std::log2(fit.samples_per_mb * memory_mb + fit.offset)));
}

/// The measured machine to scale from: one with the same GPU, else the one nearest in peak FLOPS.
Result<Alone> scaled_alone(const Profile& profile, const InstanceType& type, const Catalog& catalog) {
  const InstanceType* nearest = nullptr;
  double distance = std::numeric_limits<double>::infinity();
  for (const auto& [reference_name, measured] : profile.types) {
    const InstanceType* reference = catalog.find(reference_name);
    if (!has_speed(measured) || reference == nullptr || !reference->gpu || !type.gpu) continue;
    double apart = std::numeric_limits<double>::infinity();
    if (reference->gpu->model == type.gpu->model) {
      apart = std::fabs(std::log(static_cast<double>(reference->gpu_count) / type.gpu_count)) * 1e-3;
    } else if (reference->gpu->tflops_fp32 && type.gpu->tflops_fp32) {
      apart = 1e-2 + std::fabs(std::log(*reference->gpu->tflops_fp32 / *type.gpu->tflops_fp32));
    }
    if (apart < distance) {
      distance = apart;
      nearest = reference;
    }
  }
  if (nearest == nullptr) {
    return fail("profile '{}' has no measurement on {} and none to scale from", profile.name, type.name);
  }
  auto alone = measured_alone(profile, *nearest, profile.types.find(nearest->name)->second);
  if (!alone) return alone;
  alone->batch = alone->batch / nearest->gpu_count * type.gpu_count;
  alone->basis = Basis::scaled;
  if (nearest->gpu->model != type.gpu->model) {
    alone->compute *= *nearest->gpu->tflops_fp32 / *type.gpu->tflops_fp32;
    alone->relative_sd = std::hypot(alone->relative_sd, kFlopsScalingSd);
  }
  if (profile.batch_fit) {
    const double batch = batch_by_memory(*profile.batch_fit, *type.gpu) * type.gpu_count;
    alone->compute *= batch / alone->batch;
    alone->batch = batch;
  }
  return alone;
}

/// From a machine without a GPU, such as the one that a job was profiled on: by what it reaches multiplying matrices
/// against a GPU's peak, or by the cores.
std::optional<Alone> pace_from_cores(const Profile& profile, const InstanceType& type, const Catalog& catalog) {
  for (const auto& [reference_name, measured] : profile.types) {
    const InstanceType* reference = catalog.find(reference_name);
    if (!measured.compute || (reference != nullptr && reference->gpu)) continue;
    Alone alone{.compute = measured.compute->count(),
                .batch = measured.batch,
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

void apply_loader(const LoaderProfile& loader, const InstanceType& type, Worker& worker) {
  if (loader.prep_samples_per_s_per_vcpu) {
    const double prep = worker.batch / (*loader.prep_samples_per_s_per_vcpu * type.vcpus);
    if (prep > worker.compute) {
      worker.compute = prep;
      worker.compute_part = Part::prep;
    }
  }
  if (loader.fetch_samples_per_s) {
    const double fetch = worker.batch / *loader.fetch_samples_per_s;
    if (fetch > worker.compute) {
      worker.compute = fetch;
      worker.compute_part = Part::fetch;
    }
  }
}

}  // namespace

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
    worker.relative_sd = alone->relative_sd;
    worker.basis = alone->basis;
  }
  worker.pcie = profile.exchange == Exchange::server ? pcie_time(profile, type) : 0;
  worker.interconnect = interconnect_time(profile, type);
  apply_loader(profile.loader, type, worker);
  // Towards a server only the rate counts (Cynthia's model apart); machines that differ in the rest of their link are
  // alike.
  if (profile.exchange == Exchange::server && (worker.nic <= 0 || !profile.cynthia)) worker.nic = worker.rate;
  if (worker.nic <= 0) {
    return fail("the network of {} is not in catalogue '{}', and profile '{}' has no {}", type.name, catalog.name,
                profile.name,
                profile.exchange == Exchange::server ? "link.request_mb_per_s" : "network_mb_per_s for it");
  }
  return worker;
}

Workload make_workload(const Profile& profile, std::optional<Sync> sync) {
  Workload job{.sync = sync.value_or(profile.sync), .exchange = profile.exchange};
  job.parameters = profile.parameters ? profile.parameters->value : 0;
  job.tensors = profile.tensors.value_or(1);
  job.latency = profile.link.latency.count();
  job.overlap = profile.link.overlap;
  job.server_cpu = profile.server.cpu ? profile.server.cpu->count() : 0;
  job.server_demand = profile.server.demand ? profile.server.demand->count() : 0;
  job.in_turn = profile.server.in_turn;
  job.contention = profile.contention;
  job.cynthia = profile.cynthia;
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
