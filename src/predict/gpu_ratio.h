#pragma once

#include <optional>

#include "cloud/instance_type.h"
#include "job/recipe.h"

// How fast one GPU does what was measured on another: docs/models.md#gpus.
namespace mayfly {

/// Samples per second of one against the other, both with the software of the measurement.
struct GpuRatio {
  double speed = 1;
  /// Of the logarithm: 8 of 10 lie within 1.28 of it.
  double relative_sd = 0;
};
/// Of tuned code, as fitted to published speeds; the default is what ships.
struct TunedFit {
  double attention = 0.58;  ///< share of what Hopper's products of matrices reach that its attention does
};
/// Nothing where a peak or the memory rate of one of them is not known.
std::optional<GpuRatio> gpu_ratio(const Gpu& from, const Gpu& to, const Recipe& recipe, const TunedFit& fit = {});

/// Where the host, not the GPU, sets the pace (small steps, many launches): what remains of a ratio.
GpuRatio host_bound(const GpuRatio& ratio);
/// A step this far below its GPU's peak with so few samples waits for the host.
inline constexpr double kHostBoundShare = 0.05;
inline constexpr double kHostBoundBatch = 32;

/// 10^12 operations per second at the precision's dense peak: of a precision that the GPU does not have, at the next
/// wider one it has.
std::optional<double> peak_tflops(const Gpu& gpu, Precision precision);

/// False for bf16 before Ampere and for fp8 where there is no peak of it.
bool has_precision(const Gpu& gpu, Precision precision);

/// The highest share of its peak that published training runs reached with this precision. More is not believed.
double best_published_share(Precision precision);

/// A name such as "ResNet-50" or "Llama 3 8B"; unknown where it says nothing.
Network network_called(std::string_view model);

}  // namespace mayfly
