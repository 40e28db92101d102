#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "control/controller.h"
#include "control/job.h"
#include "engine/engine.h"
#include "engine/script_command.h"
#include "job/job_spec.h"
#include "predict/emulation.h"
#include "run/step_watch.h"
#include "status/progress.h"
#include "status/summary.h"
#include "vault/depot.h"
#include "vault/shelves.h"

namespace mayfly {

/// Silences and patience of a run. docs/protocol.md
struct RunTimes {
  Seconds heartbeat{0.5};
  Seconds silence{2};      ///< of a worker, after which it is taken for lost
  Seconds orphan{30};      ///< silence after which a worker takes the controller for gone
  Seconds replacement{1};  ///< without a trace: from a loss to the start of a new machine
  StepWatch::Options step{};
};

/// The machines of a job's parameter servers.
struct ServerRole {
  std::string type{};
  int count = 0;  ///< standbys included
  UsdPerHour price{};
  MachineLimits limits{};
};

/// Where a run stands when it needs more machines.
struct Shortfall {
  std::vector<MachineRole> machines{};
  Seconds elapsed{};
  double epochs = 0;
  std::optional<double> loss{};
};

/// Everything a run needs, all of it known before it starts.
struct RunInputs {
  JobSpec spec{};
  std::string job_text{};
  std::filesystem::path job_file{};       ///< absolute
  std::filesystem::path directory{};      ///< of this run; docs/formats.md#run
  EngineChoice engine{};                  ///< where machines come from
  std::optional<ScriptCommand> script{};  ///< what workers run instead of mayfly-train
  std::vector<ShelfRoot> shelf{};         ///< for machines that share no files with this computer
  int workers = 1;                        ///< machines to hold
  std::vector<MachineRole> roles{};       ///< what they play, one each
  ServerRole servers{};
  bool supervised = false;               ///< the parent process starts this one again should it be killed
  bool starts_machines = true;           ///< otherwise all of them come by themselves
  bool rents = true;                     ///< workers on demand beside its roles, to keep a deadline
  bool priced = false;                   ///< roles have prices
  std::string address = "127.0.0.1";     ///< where the controller listens
  int port = 0;                          ///< 0: any that is free
  std::string advertise{};               ///< HOST or HOST:PORT where workers reach it; empty: where it listens
  std::string interface = "lo";          ///< and each other
  bool private_network = false;          ///< what workers say to each other there needs no encryption
  const Job* job = nullptr;              ///< shapes and costs; outlives the run
  const Profile* profile = nullptr;      ///< where there is one; outlives the run
  std::optional<Emulation> emulation{};  ///< roles are held back by it; what was promised is stretched already
  PolicyName policy = PolicyName::liveput;
  Forecast forecast{};
  /// The cheapest machines that put a promise right again; none, where nothing is known of others than those it has.
  std::function<std::vector<MachineRole>(const Shortfall&)> addition{};
  RunTimes times{};
  Surroundings around{};  ///< for an object store
};

struct RunCalls {
  std::function<void(const std::string&)> say{};  ///< something a person wants to know at once
  std::function<void(const RunProgress&)> progress{};
};

/// Trains until the target, the budget's end or a signal: SIGINT or SIGTERM saves and ends, SIGINT again ends at once.
/// A directory that holds a run already goes on with it: processes that are still alive are found again. One thread,
/// one such call in a process.
Result<RunSummary> drive(const RunInputs& inputs, const RunCalls& calls);

/// Whether workers can carry out this policy's changes; the error says which they cannot.
Result<void> check_policy(PolicyName policy);

/// Where its checkpoints go: a folder's path, or an address in an object store.
std::string checkpoint_place(const RunInputs& inputs);

}  // namespace mayfly
