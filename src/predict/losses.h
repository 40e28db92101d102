#pragma once

#include "predict/shapes.h"

namespace mayfly {

/// Pr[`hit` of the `lost` fall among the `inside`] when all sets of `lost` of `machines` are alike.
double hit_probability(int machines, int inside, int lost, int hit);

/// Pr[every stage keeps at least `keep` machines] when `lost` of `machines` go at random, those outside the grid being
/// spares. docs/models.md#liveput
double survival_probability(int machines, Shape grid, int keep, int lost);

}  // namespace mayfly
