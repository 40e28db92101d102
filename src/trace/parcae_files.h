#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace mayfly {

/// One interval of Parcae's released choices: what happened, and the pipelines {copies, stages} each policy chose.
struct ParcaeChoice {
  int before = 0;
  int added = 0;
  int removed = 0;
  Seconds duration{};
  std::array<int, 2> throughput_opt{};
  std::array<int, 2> truth{};    ///< the liveput optimiser told the future
  std::array<int, 2> predict{};  ///< the same with Parcae's forecast
  bool operator==(const ParcaeChoice&) const = default;
};

/// `choices_*.json`. Each interval must start with the machines the one before left.
Result<std::vector<ParcaeChoice>> parse_parcae_choices(std::string_view text, const std::string& file);

}  // namespace mayfly
