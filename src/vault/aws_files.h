#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace mayfly {

/// The settings of one section of ~/.aws/config or ~/.aws/credentials, by name in small letters; of a nested one, such
/// as `s3` of a services section, "s3.endpoint_url".
using AwsSettings = std::map<std::string, std::string>;

/// All sections by their names as they stand between the brackets. A line that is neither blank, comment, section nor
/// setting is an error with its number.
Result<std::map<std::string, AwsSettings>> parse_aws_file(std::string_view text, const std::string& file);

/// What a command line of such a file is made of: words between blanks, quotes and backslashes as in a shell, and
/// nothing expanded.
Result<std::vector<std::string>> command_words(std::string_view line);

}  // namespace mayfly
