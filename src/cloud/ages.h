#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cloud/catalog.h"

namespace mayfly {

/// "1 day", "11 months", "1 year", "2.5 years": how long `days` are, for people.
std::string age_text(int days);

/// Says so, in one line, where prices that are to be compared are of days more than a year apart: those that `types`
/// have in `market`. Types without such a price count for nothing.
std::optional<std::string> price_ages(const Catalog& catalog, const std::vector<std::string>& types, Market market);

}  // namespace mayfly
