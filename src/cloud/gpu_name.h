#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cloud/instance_type.h"

namespace mayfly {

/// What a cloud's name of a GPU says: "NVIDIA A100-80GB-SXM4" is an A100 of form SXM4 with 80 GB.
struct GpuName {
  std::string family{};  ///< capitals and digits: RTX6000ADA
  std::string form{};    ///< SXM, SXM4, PCIE, NVL; empty where the name has none
  double gib = 0;        ///< 0 where the name has no size
};
GpuName gpu_name(std::string_view text);

/// The form that stands as a word in "gpu_1x_h100_pcie" or "A100 PCIe"; empty where there is none.
std::string form_in(std::string_view text);

/// Clouds state what is usable: AWS gives an L4 of 24 GB 22888 MiB, 7 % less. Sizes of one model differ by far more.
bool same_memory(double a_gib, double b_gib);

/// The one of `gpus` that is meant, of `gib` where that is known; none where there is no such or several could be. A
/// name without a form is a model without one ("A100-80GB"), which is the SXM one where the chip has both.
const Gpu* gpu_named(const std::vector<Gpu>& gpus, const GpuName& name, std::optional<double> gib);

/// Whether the name leaves open which of two forms of `gpus` is meant, gpu_named() then taking that without one.
bool form_is_open(const std::vector<Gpu>& gpus, const GpuName& name, std::optional<double> gib);

/// A model's whole name, or the beginning of it up to a hyphen, in whatever case: A100 is A100-80GB, but L4 is not
/// L40S-48GB.
bool is_gpu_called(std::string_view model, std::string_view name);

}  // namespace mayfly
