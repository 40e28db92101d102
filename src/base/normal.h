#pragma once

namespace mayfly {

/// A tenth of the standard normal distribution lies above it: 8 of 10 lie within as many standard deviations.
inline constexpr double kTenthAbove = 1.2815515655446004;

/// Share of the standard normal distribution below `z`.
double normal_share(double z);
/// Its inverse, to 1e-12. Requires 0 < share < 1.
double normal_quantile(double share);

}  // namespace mayfly
