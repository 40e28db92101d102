#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace mayfly {

/// What is special about one cloud's file in SkyPilot's catalogue, as its generating scripts and files show.
struct SkypilotCloud {
  std::string_view name{};
  /// SizeInMiB is of all GPUs of the machine together.
  bool total_memory = false;
  /// The clouds behind a broker are named in front of the type, before this text.
  std::string_view broker_mark{};
  /// To be known by who imports it; may be empty.
  std::string_view remark{};
};

/// The cloud of `--cloud NAME`, or an error with those there are.
Result<const SkypilotCloud*> skypilot_cloud(std::string_view name);
std::string skypilot_cloud_names();

/// The accelerator as its file names it best: Vast's column drops "NVL" and "Ti", which its types keep.
std::string_view accelerator_of(const SkypilotCloud& cloud, std::string_view type, std::string_view accelerator);

/// Machines of two clouds behind one broker are never one cluster: "hyperstack, CA". Vast's may begin with a comma.
std::string region_of(const SkypilotCloud& cloud, std::string_view type, std::string_view region);

}  // namespace mayfly
