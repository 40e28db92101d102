#pragma once

#include <array>
#include <string_view>

#include "cloud/instance_type.h"

// Several GPUs in one machine: docs/models.md#several-gpus. Seconds and bytes.
namespace mayfly {

/// Fitted to published runs on one GPU and on several; the defaults are what ships.
struct GpuLinkFit {
  double unhidden = 0.41;        ///< of what is reduced, the share that nothing hides
  double hides = 0.21;           ///< of a step, the share behind which the rest may hide
  double spread = 0.031;         ///< share that three doublings of the GPUs add to a step
  double uneven_spread = 0.148;  ///< the same where samples differ in size
  double latency = 0.0005;       ///< s that each doubling adds
  /// Share of the rate on paper that a ring reaches: NVLink of a V100, A100, H100 and later; PCIe 3, 4 and 5.
  std::array<double, 4> nvlink{0.137, 0.195, 0.296, 0.296};
  std::array<double, 3> pcie{0.281, 0.651, 0.571};
};

/// By what GPUs of a machine reach each other: NVLink, PCIe with access to each other's memory, PCIe of a virtual
/// machine that says nothing of it, the host's memory, or links that are not known; or what the job measured.
enum class GpuLinkKind { nvlink, pcie, virtual_pcie, host, unknown, measured };
std::string_view name(GpuLinkKind kind);

/// How the GPUs of a machine reduce gradients among themselves.
struct GpuLinks {
  GpuLinkKind kind = GpuLinkKind::unknown;
  double bus = 0;          ///< B/s that a ring of them reaches
  bool overlaps = true;    ///< traffic may hide behind the backward pass
  double relative_sd = 0;  ///< of the step's logarithm
};
/// By NVLink (the GPU's own where nothing is said of the machine's links), else PCIe with or without access to each
/// other's memory, else a guess with a wide band. Requires several.
GpuLinks gpu_links(const InstanceType& type, const GpuLinkFit& fit = {});
/// What samples that differ in size add to the spread: how long the longest of a batch is.
double uneven_sd(int gpus);

/// Where the time of an exchange goes in one step, s.
struct ExchangeTime {
  double waiting = 0;  ///< for the slowest of all
  double latency = 0;
  double traffic = 0;  ///< bytes / rate
  double hidden = 0;   ///< of that, behind the step
  double stall() const { return waiting + latency + traffic - hidden; }
  bool operator==(const ExchangeTime&) const = default;
};
/// What a step takes longer on `gpus` GPUs than on one that needs `alone` for it with the same samples each. `uneven`:
/// samples differ in size, and the slowest GPU decides.
ExchangeTime exchange_among_gpus(double alone, int gpus, double gradient_bytes, const GpuLinks& links, bool uneven,
                                 const GpuLinkFit& fit = {});
double time_among_gpus(double alone, int gpus, double gradient_bytes, const GpuLinks& links, bool uneven,
                       const GpuLinkFit& fit = {});
/// The other way round: `alone` of a step that takes `together` on so many GPUs. Not positive where the links alone
/// take longer.
double time_alone(double together, int gpus, double gradient_bytes, const GpuLinks& links, bool uneven);

}  // namespace mayfly
