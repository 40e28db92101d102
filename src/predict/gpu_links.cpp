#include "predict/gpu_links.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace mayfly {
namespace {

/// A generation of links: rates up to `rate` B/s one way; the spread of 2, 4 and 8 GPUs.
struct Generation {
  double rate = 0;
  std::array<double, 3> sd{};
};
constexpr std::array<Generation, 4> kNvlink{{{200e9, {0.06, 0.08, 0.095}},
                                             {350e9, {0.04, 0.055, 0.065}},
                                             {500e9, {0.035, 0.04, 0.05}},
                                             {1e300, {0.05, 0.06, 0.07}}}};
/// With access to each other's memory; the rate on paper is 15.75, 31.5 and 63 GB/s.
constexpr std::array<Generation, 3> kPcie{
    {{20e9, {0.09, 0.10, 0.12}}, {40e9, {0.055, 0.07, 0.08}}, {1e300, {0.05, 0.06, 0.08}}}};
/// In a virtual machine, where that access is often off.
constexpr double kVirtualShare = 0.198;
constexpr std::array<double, 3> kVirtualSd{0.15, 0.18, 0.20};
/// Through the host's memory.
constexpr double kThroughHost = 5e9;
constexpr std::array<double, 3> kThroughHostSd{0.08, 0.24, 0.38};
/// Slower NVLink is a bridge between cards, which a machine may lack.
constexpr double kBoard = 100e9;
constexpr double kUnknown = 8e9;
constexpr std::array<double, 3> kUnknownSd{0.20, 0.30, 0.35};

/// Between 2, 4 and 8 GPUs linear in their doublings, and on beyond.
double spread(const std::array<double, 3>& sd, int gpus) {
  const double doublings = std::log2(static_cast<double>(gpus));
  if (doublings <= 1) return sd[0];
  if (doublings <= 2) return sd[0] + (sd[1] - sd[0]) * (doublings - 1);
  return sd[1] + (sd[2] - sd[1]) * std::min(2.0, doublings - 2);
}

GpuLinks by_generation(GpuLinkKind kind, std::span<const Generation> all, std::span<const double> shares, double rate,
                       int gpus) {
  const auto own = std::find_if(all.begin(), all.end(), [&](const Generation& g) { return rate <= g.rate; });
  return {.kind = kind,
          .bus = shares[static_cast<std::size_t>(own - all.begin())] * rate,
          .relative_sd = spread(own->sd, gpus)};
}

double reducing(int gpus, double bytes, const GpuLinks& links) { return 2.0 * (gpus - 1) / gpus * bytes / links.bus; }

}  // namespace

std::string_view name(GpuLinkKind kind) {
  constexpr std::array<std::string_view, 6> kNames{"nvlink", "pcie", "pcie-virtual", "host", "unknown", "measured"};
  return kNames[static_cast<std::size_t>(kind)];
}

GpuLinks gpu_links(const InstanceType& type, const GpuLinkFit& fit) {
  const int gpus = type.gpu_count;
  auto nvlink = type.nvlink;
  // Where nothing is said of the machine, its GPUs are taken to be connected as they are made to be.
  const bool said = type.pcie || type.peer_to_peer;
  if (!nvlink && !said && type.gpu && type.gpu->nvlink && type.gpu->nvlink->value >= kBoard) nvlink = type.gpu->nvlink;
  if (nvlink) return by_generation(GpuLinkKind::nvlink, kNvlink, fit.nvlink, nvlink->value, gpus);
  if (type.peer_to_peer == false)
    return {
        .kind = GpuLinkKind::host, .bus = kThroughHost, .overlaps = false, .relative_sd = spread(kThroughHostSd, gpus)};
  if (!type.pcie) return {.bus = kUnknown, .overlaps = false, .relative_sd = spread(kUnknownSd, gpus)};
  if (!type.peer_to_peer)
    return {.kind = GpuLinkKind::virtual_pcie,
            .bus = kVirtualShare * type.pcie->value,
            .relative_sd = spread(kVirtualSd, gpus)};
  return by_generation(GpuLinkKind::pcie, kPcie, fit.pcie, type.pcie->value, gpus);
}

double uneven_sd(int gpus) { return 0.03 * std::log2(static_cast<double>(std::max(1, gpus))); }

ExchangeTime exchange_among_gpus(double alone, int gpus, double gradient_bytes, const GpuLinks& links, bool uneven,
                                 const GpuLinkFit& fit) {
  if (gpus < 2) return {};
  const double doublings = std::log2(static_cast<double>(gpus));
  const double traffic = reducing(gpus, gradient_bytes, links);
  return {.waiting = alone * (uneven ? fit.uneven_spread : fit.spread) / 3 * doublings,
          .latency = fit.latency * doublings,
          .traffic = traffic,
          .hidden = links.overlaps ? std::min((1 - fit.unhidden) * traffic, fit.hides * alone) : 0};
}

double time_among_gpus(double alone, int gpus, double gradient_bytes, const GpuLinks& links, bool uneven,
                       const GpuLinkFit& fit) {
  return exchange_among_gpus(alone, gpus, gradient_bytes, links, uneven, fit).stall();
}

double time_alone(double together, int gpus, double gradient_bytes, const GpuLinks& links, bool uneven) {
  if (gpus < 2) return together;
  const GpuLinkFit fit;
  const double doublings = std::log2(static_cast<double>(gpus));
  const double stretch = 1 + (uneven ? fit.uneven_spread : fit.spread) / 3 * doublings;
  const double traffic = reducing(gpus, gradient_bytes, links);
  const double rest = together - fit.latency * doublings;
  if (!links.overlaps) return (rest - traffic) / stretch;
  // All that may hide does, or the step is too short for it.
  const double long_enough = (rest - fit.unhidden * traffic) / stretch;
  if (fit.hides * long_enough >= (1 - fit.unhidden) * traffic) return long_enough;
  return (rest - traffic) / (stretch - fit.hides);
}

}  // namespace mayfly
