#pragma once

#include <string>

#include "base/result.h"

namespace mayfly {

/// What a credential_process prints; its words are not a shell's. It must end well, within a minute.
Result<std::string> key_program_output(const std::string& line);

}  // namespace mayfly
