#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace mayfly {

/// What every row of a type says again. What the file leaves out, or states as 0 of a GPU's memory, is absent.
struct SkypilotFigures {
  std::optional<double> vcpus{};
  std::optional<double> memory_gib{};
  std::optional<double> gpu_count{};
  std::optional<double> gpu_size{};  ///< SizeInMiB as it stands, in whatever unit
  bool operator==(const SkypilotFigures&) const = default;
};

/// One row of SkyPilot's catalogue CSV, checked. Views live as long as the fields they are read from.
struct SkypilotRow {
  std::string_view type{};
  std::string_view accelerator{};
  std::string_view gpu_name{};  ///< of GpuInfo, which may say more than the accelerator
  std::string_view region{};
  std::string_view zone{};
  SkypilotFigures figures{};
  std::optional<double> price{};
  std::optional<double> spot_price{};
  int line = 0;
};

/// Where the columns are, whatever their order and case.
class SkypilotHeader {
 public:
  static Result<SkypilotHeader> of(const std::vector<std::string>& names, const std::string& file);

  /// An error "file:line: column ...: seen, want ..." where a figure is none or out of all bounds.
  Result<SkypilotRow> row(const std::vector<std::string>& fields, const std::string& file, int line) const;

 private:
  enum Column {
    kType,
    kVcpus,
    kMemory,
    kAccelerator,
    kGpuCount,
    kGpuInfo,
    kRegion,
    kZone,
    kPrice,
    kSpotPrice,
    kColumns
  };
  static constexpr std::array<std::string_view, kColumns> kNames = {
      "InstanceType", "vCPUs",  "MemoryGiB",        "AcceleratorName", "AcceleratorCount",
      "GpuInfo",      "Region", "AvailabilityZone", "Price",           "SpotPrice"};

  std::size_t width_ = 0;
  std::array<std::optional<std::size_t>, kColumns> at_{};
};

}  // namespace mayfly
