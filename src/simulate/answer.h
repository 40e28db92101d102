#pragma once

#include <optional>
#include <string>
#include <vector>

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
  std::string type{};      ///< of a job without measured shapes
  MachineCount servers{};  ///< of one with servers, standbys included; without a type: one of the usual
  bool optimum = false;    ///< whether the offline optimum is wanted, too
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
/// Policies meet every series by itself, each with its own prices; those replayed interval by interval meet them
/// pooled.
Result<ReplayAnswer> replay_answer(const Profile& profile, const Catalog& catalog, const Trace& trace,
                                   const ReplayQuestion& question);

}  // namespace mayfly
