#pragma once

#include <cstdint>
#include <memory>

#include "data/dataset.h"

namespace mayfly {

/// Digits 0 to 9 drawn with a pen of random width on 28 x 28 pixels, shifted, turned, slanted, stretched, bent and made
/// noisy. Sample i depends on (seed, i) alone, so nothing is stored and any of them can be drawn on its own. Black is
/// -1, full light 1, before the noise.
std::unique_ptr<Dataset> digits_dataset(std::int64_t samples, std::uint64_t seed);

}  // namespace mayfly
