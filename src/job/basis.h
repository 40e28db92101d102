#pragma once

#include <string_view>

namespace mayfly {

/// What a figure rests on: a measurement of this job, one scaled from another machine or job, or the user's word.
enum class Basis { measured, scaled, given };
std::string_view name(Basis basis);

}  // namespace mayfly
