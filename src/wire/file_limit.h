#pragma once

#include <cstdint>

namespace mayfly {

/// How many files, connections included, this process may have open: raised to the most that it may allow itself. What
/// it starts from now on may have as many.
std::int64_t raised_file_limit();

}  // namespace mayfly
