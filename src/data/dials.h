#pragma once

#include <filesystem>
#include <memory>

#include "base/result.h"
#include "base/units.h"
#include "data/dataset.h"

namespace mayfly {

/// Samples whose costs are set by hand, so that each way of being slow can be had on purpose: so many bytes to fetch
/// from a real file, so much of a processor's time to prepare. The file is made where it is missing; the bytes of a
/// sample begin with its number, and others are an error.
Result<std::unique_ptr<Dataset>> open_dials(const DataSpec& spec, const std::filesystem::path& folder);

/// Takes this much of a processor's time, in this thread.
void burn(Seconds time);

}  // namespace mayfly
