#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace mayfly::cli {

/// What a program prints, standard error included, without the last line end. An error where it cannot be started, ends
/// with anything but 0, or has not ended within `patience`: it is killed then.
Result<std::string> captured(std::vector<std::string> words, Seconds patience);

/// The file that a shell would start for this word; empty: none.
std::string found_in_path(const std::string& program);

}  // namespace mayfly::cli
