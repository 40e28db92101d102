#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "trace/trace.h"

namespace mayfly {

/// What a file cannot say about itself.
struct TraceOptions {
  std::string format{};             ///< one of trace_formats(); empty: recognised from the contents
  std::optional<Seconds> gap{};     ///< between observations; default: as the file has it, else 60 s
  std::optional<bool> preempted{};  ///< gap-json: whether 1 means preempted; needed where the file does not say
  std::string type{};               ///< names series that have no type; of named ones, keeps those of this type
  std::string zone{};               ///< likewise
  std::optional<Observation> observation{};  ///< default: what the format usually holds
};

/// Every format's name, as `format` takes it.
std::span<const std::string_view> trace_formats();

/// Reads any of the formats of docs/formats.md#trace. Errors name file:line, the value seen and the value wanted.
Result<Trace> parse_trace(std::string_view text, const std::string& file, const TraceOptions& options = {});
Result<Trace> load_trace(const std::filesystem::path& path, const TraceOptions& options = {});

}  // namespace mayfly
