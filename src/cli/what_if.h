#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "predict/data_path.h"

namespace mayfly::cli {

/// A data path as it is not, and what was changed, in words.
struct WhatIf {
  std::string text{};
  DataPath path{};
};

/// "cache=50%,threads=4,cores=8,storage=200,device=2x,machines=2": cached share, prep threads, storage in MB/s, the
/// device so many times faster, machines that share their caches.
Result<WhatIf> parse_what_if(std::string_view text, const DataPath& path);

/// The changes that are tried without being asked for.
std::vector<WhatIf> usual_what_ifs(const DataPath& path);

}  // namespace mayfly::cli
