#pragma once

#include <string>

#include "trace/trace.h"

namespace mayfly {

/// mayfly-trace/1; parse_trace reads the same trace from it.
std::string mayfly_trace_text(const Trace& trace);

/// `ms,add|remove,machine`; time after the last event is lost, as the format cannot say it. Errors: several series, or
/// one whose machines have no names to tell apart.
Result<std::string> events_text(const Trace& trace);

/// `ms,count`, one row per change and one a minute before the end. Errors: several series, or one without counts.
Result<std::string> counts_text(const Trace& trace);

}  // namespace mayfly
