#include "predict/fabric.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

#include "cloud/instance_type.h"
#include "predict/gpu_links.h"

namespace mayfly {
namespace {

/// B/s that a ring over InfiniBand or EFA reaches at least, however few the adapters, unless these are slower.
constexpr double kLeastFast = 13e9;
/// Of the step that nothing scales, no more than this is taken to be fixed.
constexpr double kMostFixed = 0.45;
/// Spread of the logarithm among two machines, and what each doubling adds.
constexpr double kRingSd = 0.045;
constexpr double kRingSdGrowth = 0.008;
constexpr double kRoceWider = 1.5;
constexpr double kUnknownWider = 1.6;
constexpr double kEthernetSd = 0.35;

/// Adapters that machines full of such GPUs were published with, B/s for each GPU.
struct UsualAdapters {
  std::string_view gpu{};
  int gpus = 8;
  double rate = 0;
};
constexpr std::array<UsualAdapters, 6> kUsualAdapters{{{"V100-", 8, 6.25e9},
                                                       {"A100-", 8, 25e9},
                                                       {"H100-", 8, 50e9},
                                                       {"H200-", 8, 50e9},
                                                       {"B200-", 8, 50e9},
                                                       {"GB200-", 4, 50e9}}};
/// NVLink of boards; slower is a bridge between cards.
constexpr double kBoards = 100e9;

double doublings(int machines) { return std::log2(static_cast<double>(machines)); }

std::optional<double> usual_rate(const InstanceType& type) {
  if (!type.gpu || !type.gpu->nvlink || type.gpu->nvlink->value < kBoards) return std::nullopt;
  for (const auto& [gpu, gpus, rate] : kUsualAdapters) {
    if (type.gpu->model.starts_with(gpu) && type.gpu_count >= gpus) return rate * type.gpu_count;
  }
  return std::nullopt;
}

double fast_bus(double rate, const RingFit& fit) { return std::min(rate, std::max(fit.fast_share * rate, kLeastFast)); }

/// B/s that a ring reaches; nothing known of the network: none.
struct Bus {
  double rate = 0;
  double relative_sd = kRingSd;
  double sd_growth = kRingSdGrowth;
  bool fast = true;  ///< GPUs send without their hosts
};
Bus bus_of(const InstanceType& type, const RingFit& fit) {
  const auto network = type.usable_network();
  const auto rate = type.fabric_rate ? type.fabric_rate : network;
  const Fabric fabric = type.fabric.value_or(Fabric::ethernet);
  if (rate && fabric == Fabric::roce)
    return {.rate = fit.roce_share * rate->value,
            .relative_sd = kRoceWider * kRingSd,
            .sd_growth = kRoceWider * kRingSdGrowth};
  if (rate && fabric != Fabric::ethernet) return {.rate = fast_bus(rate->value, fit)};
  if (rate)
    return {.rate = fit.ethernet_share * rate->value, .relative_sd = kEthernetSd, .sd_growth = 0, .fast = false};
  if (const auto usual = usual_rate(type))
    return {.rate = fast_bus(*usual, fit),
            .relative_sd = kUnknownWider * kRingSd,
            .sd_growth = kUnknownWider * kRingSdGrowth};
  return {};
}

}  // namespace

RingLinks ring_links(const InstanceType& type, const RingJob& job, const RingFit& fit) {
  Bus bus = bus_of(type, fit);
  if (job.measured_rate) bus = {.rate = *job.measured_rate, .fast = bus.fast && bus.rate > 0};
  const GpuLinkFit links;
  RingLinks ring{.once = bus.rate > 0 ? job.gradient_bytes / bus.rate : std::numeric_limits<double>::infinity(),
                 .hideable = 1 - links.unhidden,
                 .hides = links.hides,
                 .spread = job.uneven ? fit.uneven_spread : fit.spread,
                 .relative_sd = bus.relative_sd,
                 .sd_growth = bus.sd_growth};
  // Code that shards fetches and sends layer by layer: what was published of it shows no traffic at all. No more can
  // hide than the step is long. With parameters sharded, too, they are gathered twice instead of once.
  if (job.shard != Shard::none && bus.fast) ring.hideable = ring.hides = 1;
  if (job.shard == Shard::parameters) ring.once *= 1.5;
  return ring;
}

std::string_view ring_link_name(const InstanceType& type, const RingJob& job) {
  if (job.measured_rate) return "measured";
  if (type.fabric_rate || type.usable_network()) return name(type.fabric.value_or(Fabric::ethernet));
  return usual_rate(type) ? "usual" : "unknown";
}

RingLinks slower_links(const RingLinks& a, const RingLinks& b) {
  return {.once = std::max(a.once, b.once),
          .hideable = std::min(a.hideable, b.hideable),
          .hides = std::min(a.hides, b.hides),
          .spread = std::max(a.spread, b.spread),
          .relative_sd = std::max(a.relative_sd, b.relative_sd),
          .sd_growth = std::max(a.sd_growth, b.sd_growth)};
}

RingLinks faster_links(const RingLinks& a, const RingLinks& b) {
  return {.once = std::min(a.once, b.once),
          .hideable = std::max(a.hideable, b.hideable),
          .hides = std::max(a.hides, b.hides),
          .spread = std::min(a.spread, b.spread),
          .relative_sd = std::min(a.relative_sd, b.relative_sd),
          .sd_growth = std::min(a.sd_growth, b.sd_growth)};
}

double ring_traffic(const RingLinks& links, int machines) {
  return machines < 2 ? 0 : 2.0 * (machines - 1) / machines * links.once;
}

double ring_stretch(const RingLinks& links, int machines) {
  return std::pow(1 + links.spread, doublings(machines)) - 1;
}

double time_among_machines(double alone, int machines, const RingLinks& links) {
  if (machines < 2) return 0;
  const double longer = alone * (1 + ring_stretch(links, machines));
  const double traffic = ring_traffic(links, machines);
  return longer - alone + traffic - std::min(links.hideable * traffic, links.hides * longer);
}

double ring_sd(const RingLinks& links, int machines) {
  return machines < 2 ? 0 : links.relative_sd + links.sd_growth * doublings(machines);
}

double time_with_samples(double alone, double ratio, const RingFit& fit) {
  const double fixed = std::min(fit.fixed, kMostFixed * alone);
  return fixed + (alone - fixed) * std::pow(ratio, fit.power);
}

}  // namespace mayfly
