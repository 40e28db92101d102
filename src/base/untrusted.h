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

/// As load_text, but of what open_own_file() takes.
Result<std::string> load_own_text(const std::filesystem::path& path);
/// Likewise, and only where the file is this user's and no other may read or change it.
Result<std::string> load_secret(const std::filesystem::path& path);
/// Whether a folder and all that lies in it are this user's own making, so that nobody else chose what is read from
/// there and where what is written goes: each is this user's, and a regular file, a folder, or a link to a folder. The
/// error names the first that is not.
Result<void> check_own_folder(const std::filesystem::path& folder);

}  // namespace mayfly
