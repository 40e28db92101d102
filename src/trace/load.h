#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "trace/trace.h"

namespace mayfly {

/// What a file cannot say about itself.
struct TraceOptions {
  std::string format{};             ///< empty: recognised from the contents
  std::optional<Seconds> gap{};     ///< for formats without one of their own (default 60 s)
  std::optional<bool> preempted{};  ///< gap-JSON: whether 1 means preempted; required where the file does not say
  std::string type{};               ///< instance type, where the file names none
  std::string zone{};
};

/// Reads any of the formats of docs/formats.md#trace. Errors name file:line, the value seen and the value wanted.
Result<Trace> parse_trace(std::string_view text, const std::string& file, const TraceOptions& options = {});
Result<Trace> load_trace(const std::filesystem::path& path, const TraceOptions& options = {});

}  // namespace mayfly
