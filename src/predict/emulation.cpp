#include "predict/emulation.h"

#include <algorithm>

#include "base/how_many.h"

namespace mayfly {
namespace {

constexpr double kUsedOfACore = 0.8;
constexpr double kServerShare = 0.2;

std::optional<double> pace_of(const TypeProfile& measured) {
  const auto time = measured.compute ? measured.compute : measured.step;
  if (!time || measured.batch <= 0) return std::nullopt;
  return measured.batch / time->count();
}

/// Samples/s of the one type that was measured here.
std::optional<double> core_speed(const Profile& profile, const Catalog& catalog) {
  std::optional<double> speed;
  for (const auto& [name, measured] : profile.types) {
    if (measured.basis != Basis::measured || !pace_of(measured)) continue;
    if (speed) return std::nullopt;
    const auto* type = catalog.find(name);
    const auto worker = type != nullptr ? make_worker(profile, *type, catalog) : Result<Worker>(Worker{});
    speed = type != nullptr && worker ? worker->batch / worker->compute : *pace_of(measured);
    *speed /= measured.cores.value_or(1);
  }
  return speed;
}

Result<double> speed_of(const Profile* profile, const Catalog& catalog, const InstanceType& type) {
  if (profile == nullptr) {
    if (!type.gpu || !type.gpu->tflops_fp32)
      return fail("nothing is known of the speed of {}: it has no GPU in catalogue '{}', and there is no profile",
                  type.name, catalog.name);
    return *type.gpu->tflops_fp32 * type.gpu_count;
  }
  const auto worker = make_worker(*profile, type, catalog);
  if (!worker) return unexpected(worker.error());
  if (worker->compute <= 0) return fail("profile '{}' has no speed of one {}", profile->name, type.name);
  return worker->batch / worker->compute;
}

std::optional<BytesPerSecond> network_of(const Profile* profile, const InstanceType& type) {
  if (profile != nullptr) {
    const auto measured = profile->types.find(type.name);
    if (measured != profile->types.end() && measured->second.network) return measured->second.network;
  }
  return type.usable_network();
}

template <class Value>
void scale(std::optional<Value>& value, double factor) {
  if (value) value = *value * factor;
}

void scale(std::optional<Price>& price, double factor) {
  if (price) price->rate = price->rate * factor;
}

void slow_down(InstanceType& type, double factor) {
  for (auto* link : {&type.network, &type.network_burst, &type.pcie, &type.nvlink}) scale(*link, 1 / factor);
  for (auto* price : {&type.on_demand, &type.spot}) scale(*price, 1 / factor);
  for (auto& zone : type.zones) {
    scale(zone.on_demand, 1 / factor);
    scale(zone.spot, 1 / factor);
  }
  if (!type.gpu) return;
  scale(type.gpu->tflops_fp32, 1 / factor);
  scale(type.gpu->tflops_fp16, 1 / factor);
}

void slow_down(ServerlessProfile& functions, double factor) {
  for (auto* rate : {&functions.rate_slope, &functions.rate_offset, &functions.load_slope, &functions.load_offset})
    *rate /= factor;
  scale(functions.store, 1 / factor);
  functions.function_network = functions.function_network / factor;
  functions.server_network = functions.server_network / factor;
  functions.restart *= factor;
}

}  // namespace

Result<Emulation> make_emulation(const Profile* profile, const Catalog& catalog, const EmulationRequest& request) {
  const double cores = kUsedOfACore * request.cores - kServerShare * request.servers;
  if (cores <= 0)
    return fail("{} leave nothing of {} for workers", how_many(request.servers, "server"),
                how_many(request.cores, "core"));
  double fastest = 0;
  double all = 0;
  for (const MachineCount& machine : request.machines) {
    const auto type = lookup(catalog, machine.type);
    if (!type) return unexpected(type.error());
    const auto speed = speed_of(profile, catalog, **type);
    if (!speed) return unexpected(speed.error());
    fastest = std::max(fastest, *speed);
    all += machine.count * *speed;
  }
  Emulation emulation{.share_per_speed = std::min(1 / fastest, cores / all)};
  // The same for every type, as shares go with speeds.
  if (const auto here = profile != nullptr ? core_speed(*profile, catalog) : std::nullopt)
    emulation.slowdown = 1 / (emulation.share_per_speed * *here);
  for (const MachineCount& machine : request.machines) {
    auto type = emulated_type(emulation, profile, catalog, **lookup(catalog, machine.type));
    if (!type) return unexpected(type.error());
    emulation.types.push_back(*std::move(type));
  }
  return emulation;
}

Result<EmulatedType> emulated_type(const Emulation& emulation, const Profile* profile, const Catalog& catalog,
                                   const InstanceType& type) {
  const auto speed = speed_of(profile, catalog, type);
  if (!speed) return unexpected(speed.error());
  EmulatedType result{.type = type.name, .cpu_share = std::min(1.0, emulation.share_per_speed * *speed)};
  if (emulation.slowdown) {
    result.network = network_of(profile, type);
    scale(result.network, 1 / *emulation.slowdown);
  }
  return result;
}

Profile stretched(Profile profile, double factor) {
  for (auto& [name, type] : profile.types) {
    scale(type.step, factor);
    scale(type.compute, factor);
    scale(type.gflops, 1 / factor);
    scale(type.network, 1 / factor);
  }
  scale(profile.link.request, 1 / factor);
  scale(profile.link.pcie, 1 / factor);
  profile.link.latency *= factor;
  scale(profile.server.network, 1 / factor);
  scale(profile.server.cpu, factor);
  scale(profile.server.demand, factor);
  scale(profile.server.price, 1 / factor);
  if (profile.cynthia) {
    scale(profile.cynthia->base_gflops, 1 / factor);
    scale(profile.cynthia->server_gflops_used, 1 / factor);
  }
  if (profile.serverless) slow_down(*profile.serverless, factor);
  scale(profile.loader.prep_samples_per_s_per_vcpu, 1 / factor);
  scale(profile.loader.fetch_samples_per_s, 1 / factor);
  if (profile.pipeline) {
    for (ShapeSpeed& shape : profile.pipeline->speeds) {
      shape.iteration *= factor;
      scale(shape.speed, 1 / factor);
    }
  }
  return profile;
}

Catalog stretched(Catalog catalog, double factor) {
  for (Gpu& gpu : catalog.gpus) {
    scale(gpu.tflops_fp32, 1 / factor);
    scale(gpu.tflops_fp16, 1 / factor);
  }
  for (InstanceType& type : catalog.types) slow_down(type, factor);
  for (FunctionPlatform& platform : catalog.functions) {
    platform.timeout *= factor;
    platform.usd_per_gib_s /= factor;
  }
  return catalog;
}

Result<InstanceType> function_type(const Profile* profile, const Catalog& catalog, int memory_mib) {
  const FunctionPlatform* platform = catalog.functions.empty() ? nullptr : &catalog.functions.front();
  if (profile != nullptr && profile->serverless) platform = catalog.find_function(profile->serverless->platform);
  if (platform == nullptr) return fail("catalogue '{}' has no such platform for functions", catalog.name);
  const int above = memory_mib - platform->memory_mib_min;
  if (above < 0 || memory_mib > platform->memory_mib_max || above % platform->memory_mib_step != 0)
    return fail("a function of {} MiB: {} has {} to {} in steps of {}", memory_mib, platform->name,
                platform->memory_mib_min, platform->memory_mib_max, platform->memory_mib_step);
  const double gib = memory_mib / 1024.0;
  InstanceType type{.name = fmt::format("lambda-{}", memory_mib), .cloud = platform->cloud, .memory_gib = gib};
  if (platform->mib_per_vcpu) type.vcpus = memory_mib / *platform->mib_per_vcpu;
  if (profile != nullptr && profile->serverless) type.network = profile->serverless->function_network;
  type.on_demand = Price{.rate = {platform->usd_per_gib_s * gib * 3600}, .source = platform->source};
  return type;
}

std::optional<TypeProfile> function_profile(const Profile& profile, const InstanceType& function, int memory_mib) {
  if (profile.serverless) {
    const ServerlessProfile& s = *profile.serverless;
    const double rate = s.rate_slope * memory_mib + s.rate_offset;
    if (rate <= 0) return std::nullopt;
    return TypeProfile{.batch = s.local_batch,
                       .compute = Seconds(s.local_batch / rate),
                       .network = s.function_network,
                       .basis = Basis::scaled};
  }
  const auto here = core_speed(profile, {});
  if (!here || function.vcpus <= 0) return std::nullopt;
  const auto base = std::find_if(profile.types.begin(), profile.types.end(), [](const auto& entry) {
    return entry.second.basis == Basis::measured && pace_of(entry.second);
  });
  const double batch = base->second.batch;
  return TypeProfile{.batch = batch, .compute = Seconds(batch / (*here * function.vcpus)), .basis = Basis::scaled};
}

}  // namespace mayfly
