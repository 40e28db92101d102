#pragma once

#include <nlohmann/json.hpp>

namespace mayfly {

/// Keys stay in the order they were written, so output reads the way its documentation does.
using Json = nlohmann::ordered_json;

}  // namespace mayfly
