#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "base/result.h"
#include "data/dataset.h"

namespace mayfly {

/// A folder with a folder for each class, those with JPEG and PNG files (.jpg, .jpeg, .png; others are passed over).
/// Classes are numbered by name, samples by class, then by name. `shape` is {1 or 3, height, width}; a picture is made
/// to cover it. Files are found at once and read when they are asked for.
Result<std::unique_ptr<Dataset>> open_images(const std::filesystem::path& folder, const std::vector<int>& shape);

}  // namespace mayfly
