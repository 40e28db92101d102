#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"

// Files and documents that any program or person may have put there.
namespace mayfly {

/// What is no JSON, or nested deeper than any document of ours (100 levels), is discarded: is_discarded(). Printing a
/// value calls itself for each level, so a deep one would end the process.
Json parsed_json(std::string_view text);

/// As load_text, but only of a file that lies there itself: no link, which may lead anywhere, and no pipe, which may
/// never end.
Result<std::string> load_own_text(const std::filesystem::path& path);

}  // namespace mayfly
