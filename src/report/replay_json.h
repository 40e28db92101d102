#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "cloud/catalog.h"
#include "job/profile.h"
#include "simulate/replay.h"
#include "trace/stats.h"

namespace mayfly {

/// What is asked of the weather: a job on a trace, policy by policy.
struct ReplayQuestion {
  std::vector<PolicyName> policies{};
  ReplayOptions options{};  ///< policy and foresight follow from the rest
  bool oracle = false;      ///< liveput knows the future
  bool parcae = false;      ///< as the published system decides and counts
  bool uneven = false;
  MigrationOptions migration{};
  std::string type{};    ///< of a job without measured shapes
  bool optimum = false;  ///< whether the offline optimum is wanted, too
};

/// Whether a policy is replayed interval by interval instead of by the controller.
bool by_interval(const ReplayQuestion& question, PolicyName policy);

/// All series of a trace together; those without machines are left out. An error where none has any.
Result<Series> pooled(const Trace& trace);

struct PolicyReplay {
  std::string policy{};
  Replay replay{};
};
struct ReplayAnswer {
  Job job;
  Series series{};
  std::size_t zones = 0;
  TraceStats stats{};
  std::vector<PolicyReplay> rows{};
  double ideal = 0;                 ///< samples of `ideal` with even pipelines, over the whole trace
  std::optional<double> optimum{};  ///< samples; not of traces where it would take long
  std::vector<std::string> notes{};
};
Result<ReplayAnswer> replay_answer(const Profile& profile, const Catalog& catalog, const Trace& trace,
                                   const ReplayQuestion& question);

/// docs/formats.md#replay. `took`: the replay itself.
Json replay_json(const Profile& profile, const Trace& trace, const ReplayQuestion& question, const ReplayAnswer& answer,
                 Seconds took);
/// The document's `trace`.
Json replayed_trace_json(const Trace& trace, const Series& series, const TraceStats& stats, std::size_t zones);

}  // namespace mayfly
