#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace mayfly {

/// Seeded random numbers, the same on every machine and library (the standard distributions are not). SplitMix64:
/// every seed is good, and a child generator is one draw away.
class Rng {
 public:
  explicit Rng(std::uint64_t seed) : state_(seed) {}

  std::uint64_t bits() {
    state_ += 0x9e3779b97f4a7c15ULL;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  /// In [0, 1).
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  /// In 0 .. n-1; requires n > 0. The bias of the multiplication is below n / 2^32.
  int below(int n) {
    return static_cast<int>((static_cast<std::uint64_t>(static_cast<std::uint32_t>(n)) * (bits() >> 32)) >> 32);
  }
  bool chance(double probability) { return uniform() < probability; }
  double exponential(double mean) { return -mean * std::log1p(-uniform()); }
  /// Knuth's product of uniforms; meant for means below a few hundred.
  int poisson(double mean) {
    const double limit = std::exp(-mean);
    int count = 0;
    for (double product = uniform(); product > limit; product *= uniform()) ++count;
    return count;
  }
  /// Mean 0, deviation 1 (Box and Muller).
  double normal() {
    const double radius = std::sqrt(-2 * std::log1p(-uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }
  /// An independent generator.
  Rng child() { return Rng(bits()); }

 private:
  std::uint64_t state_;
};

}  // namespace mayfly
