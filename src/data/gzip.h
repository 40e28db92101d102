#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"

namespace mayfly {

/// What a small gzip file may unfold into.
constexpr std::size_t kMostUnpacked = std::size_t{2} << 30;

/// The unpacked bytes of what begins like a gzip file, the bytes themselves otherwise. A file that ends early, is
/// damaged or unfolds into more than `most` bytes is an error that names it.
Result<std::string> unpacked(std::string bytes, const std::string& file, std::size_t most = kMostUnpacked);

/// A file's bytes, unpacked if need be.
Result<std::string> load_unpacked(const std::filesystem::path& path);

}  // namespace mayfly
