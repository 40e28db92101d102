#pragma once

#include <string>

#include "base/json.h"
#include "base/result.h"

namespace mayfly {

/// Two profiles of one job, taken on different machines, as one: types of both; where both have one, what was measured
/// stands before what was not, and the newer before the older. Blocks that are no type's are the newer's where it has
/// them. An error where the two are not of one job.
Result<Json> merged_profiles(const Json& older, const Json& newer);

}  // namespace mayfly
