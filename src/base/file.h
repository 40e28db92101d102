#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"

namespace mayfly {

/// The bytes of a regular file. Refuses folders, missing files and files over 512 MB.
Result<std::string> load_text(const std::filesystem::path& path);

/// Writes beside the target and renames, so a reader or a crash never sees half a file.
Result<void> save_text(const std::filesystem::path& path, std::string_view text);

}  // namespace mayfly
