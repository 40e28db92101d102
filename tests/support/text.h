#pragma once

#include <string_view>

namespace mayfly::support {

inline bool has(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

}  // namespace mayfly::support
