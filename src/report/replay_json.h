#pragma once

#include "base/json.h"
#include "simulate/answer.h"

namespace mayfly {

/// docs/formats.md#replay. `took`: the replay itself.
Json replay_json(const Profile& profile, const Trace& trace, const ReplayQuestion& question, const ReplayAnswer& answer,
                 Seconds took);
/// The document's `trace`.
Json replayed_trace_json(const Trace& trace, const Series& series, const TraceStats& stats, std::size_t zones);

}  // namespace mayfly
