#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "trace/trace.h"

namespace mayfly {

/// How long a machine lives when nothing else takes it.
struct ExponentialLife {
  Seconds mean{Hours(6)};
};
/// P(dead by t) = A (1 - e^(-t/tau1) + e^((t-b)/tau2)) divided by its value at b, where every life ends: many die
/// young, few in the middle, the rest towards the provider's limit (SciSpot: Kadupitiya et al., 2020).
struct BathtubLife {
  double a = 0.4137;
  Seconds tau1{Hours(0.9)};
  Seconds tau2{Hours(0.76)};
  Seconds b{Hours(24)};
};
/// What became of `machines` alike: `died[k]` of them between k and k+1 hours of age; the rest end with the table.
struct LifeTable {
  int machines = 0;
  std::vector<int> died{};
};
using Lifetime = std::variant<ExponentialLife, BathtubLife, LifeTable>;

/// P(dead by this age), before the hours of the day weigh in.
double dead_by(const Lifetime& life, Seconds age);
Seconds mean_lifetime(const Lifetime& life);

/// A process, and the statistics it is to have. Long traces have them: lifetimes and losses by hour by construction;
/// share_multi and share_to_zero exactly for exponential lives, and with fewer machines at once where the danger
/// depends on age, since lifetimes are kept; mean available as machines * life / (life + rejoin). Droughts come on top.
struct GeneratorOptions {
  std::string name = "generated";
  int machines = 32;  ///< asked for, in each zone
  Seconds duration{Hours(24 * 14)};
  Seconds gap{60};
  std::string type{};
  std::vector<std::string> zones{};  ///< independent of each other; empty: one, unnamed
  Lifetime lifetime{};
  std::array<double, 24> hours{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                               1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};  ///< danger by hour of day, as weights
  double share_multi = 0;             ///< preemption events that take more than one machine
  double mean_multi = 3;              ///< how many those take: 2 and a Poisson number
  double share_to_zero = 0;           ///< preemption events that take all; part of share_multi
  Seconds rejoin{Hours(1.0 / 3)};     ///< mean time until a lost machine is replaced, exponential
  double droughts_per_day = 0;        ///< times at which nothing can be had
  Seconds drought_length{Hours(2)};   ///< mean, exponential
  int drought_level = 0;              ///< machines left when a drought begins
  std::optional<UsdPerHour> price{};  ///< mean
  double price_volatility = 0;        ///< stationary deviation of the price's logarithm
  Seconds price_memory{Hours(12)};    ///< after which a deviation has shrunk to 1/e
  std::uint64_t seed = 1;
};

/// Fails on options that make no process; the message names the option, the value seen and the value wanted.
Result<Trace> generated_trace(const GeneratorOptions& options);

struct Preset {
  std::string name{};
  std::string about{};  ///< what it is and where its numbers come from
  GeneratorOptions options{};
};
const std::vector<Preset>& presets();

}  // namespace mayfly
