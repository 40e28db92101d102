#pragma once

#include <string>
#include <vector>

#include "cli/what_if.h"
#include "profile/stalls.h"

namespace mayfly::cli {

/// Where a step goes, as bars; what else was seen.
std::string stall_text(const StallReport& report);
std::string what_if_text(const std::vector<WhatIf>& what_ifs);
Json what_if_json(const std::vector<WhatIf>& what_ifs);
Json advice_json(const Advice& advice, const std::string& text);

}  // namespace mayfly::cli
