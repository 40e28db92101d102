#pragma once

namespace mayfly {

/// Pr[`hit` of the `lost` fall among the `inside`] when all sets of `lost` of `machines` are alike.
double hit_probability(int machines, int inside, int lost, int hit);

}  // namespace mayfly
