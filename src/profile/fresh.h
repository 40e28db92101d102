#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "job/profile.h"

// A profile that stands beside its job file: docs/profiling.md#fresh.
namespace mayfly {

/// A profile is taken for true so long.
inline constexpr Seconds kFreshFor{30 * 24 * 3600.0};

/// "digits.yaml" -> "digits.profile.json", in the same folder.
std::filesystem::path profile_beside(const std::filesystem::path& job_file);

/// Of a job file's text: another text, another hash, as good as always.
std::string text_hash(std::string_view text);
/// Processor and cores of this machine: profiles of two machines of one name are interchangeable.
std::string machine_name();

/// Why a profile is not one of this job on this machine, or too old; none: it is fresh. `now` in seconds since 1970.
std::optional<std::string> staleness(const Profile& profile, std::string_view job_text, const std::string& machine,
                                     double now);

}  // namespace mayfly
