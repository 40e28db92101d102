#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "control/controller.h"
#include "control/job.h"
#include "engine/local_engine.h"
#include "job/job_spec.h"
#include "predict/emulation.h"
#include "trace/trace.h"
#include "wire/data_message.h"

namespace mayfly {

/// Silences and patience of a run. docs/protocol.md
struct RunTimes {
  Seconds heartbeat{0.5};
  Seconds lease{2};        ///< silence after which a worker is taken for lost
  Seconds orphan{30};      ///< silence after which a worker takes the controller for gone
  Seconds replacement{1};  ///< without a trace: from a loss to the start of a new machine
  Seconds notice{2};       ///< with a trace: from SIGTERM to SIGKILL
};

/// What was promised, for the comparison at the end.
struct Forecast {
  std::optional<Seconds> time{};
  std::optional<Usd> cost{};
  std::optional<double> samples{};  ///< to the promised loss
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
  std::filesystem::path program{};        ///< mayfly-train
  std::optional<ScriptCommand> script{};  ///< what workers run instead
  int workers = 1;                        ///< machines to hold
  std::vector<MachineRole> roles{};       ///< what they play, one each
  ServerRole servers{};
  bool supervised = false;               ///< the parent process starts this one again should it be killed
  bool starts_machines = true;           ///< otherwise all of them come by themselves
  bool priced = false;                   ///< roles have prices
  std::optional<Series> weather{};       ///< machines come and go as in a trace
  double speed = 1;                      ///< seconds of the trace per second
  std::string address = "127.0.0.1";     ///< where the controller listens
  int port = 0;                          ///< 0: any that is free
  std::string advertise{};               ///< HOST or HOST:PORT where workers reach it; empty: where it listens
  std::string interface = "lo";          ///< and each other
  std::string notices = "none";          ///< whose metadata service the machines watch, as for `--notices`
  const Job* job = nullptr;              ///< shapes and costs; outlives the run
  const Profile* profile = nullptr;      ///< where there is one; outlives the run
  std::optional<Emulation> emulation{};  ///< roles are held back by it; what was promised is stretched already
  PolicyName policy = PolicyName::liveput;
  Forecast forecast{};
  /// The cheapest machines that put a promise right again; none, where nothing is known of others than those it has.
  std::function<std::vector<MachineRole>(const Shortfall&)> addition{};
  RunTimes times{};
  std::uint64_t seed = 1;
};

/// Where a run stands.
struct RunProgress {
  Seconds time{};
  std::int64_t step = 0;
  std::int64_t samples = 0;
  std::optional<std::int64_t> target{};
  double loss = 0;
  double samples_per_s = 0;
  int machines = 0;
  std::optional<Usd> spent{};
  std::optional<Seconds> left{};  ///< to the target at this speed
  std::optional<Seconds> deadline{};
};

enum class RunEnd { trained, budget, stopped, unable };
std::string_view name(RunEnd end);

struct RunSummary {
  RunEnd end = RunEnd::trained;
  std::optional<double> loss{};
  std::optional<double> validation_loss{};
  std::optional<double> accuracy{};
  std::int64_t samples = 0;
  double epochs = 0;
  std::int64_t samples_repeated = 0;  ///< in the weights more than once an epoch
  std::int64_t samples_skipped = 0;   ///< not in the weights
  std::int64_t samples_redone = 0;    ///< trained again, from a checkpoint
  int preemptions = 0;
  Seconds time{};
  std::optional<Usd> cost{};
  Forecast forecast{};
  std::optional<Seconds> recovery_p50{};  ///< from a loss to the next commit
  std::optional<Seconds> recovery_max{};
  std::optional<double> staleness_mean{};  ///< with servers: updates between a gradient's state and its use
  std::optional<double> staleness_max{};
  std::int64_t strangers = 0;  ///< connections that did not prove to belong to the run
  std::string checkpoint{};
  std::string failure{};              ///< of `unable`: what the job asks for and no worker can do
  std::vector<std::string> missed{};  ///< promises: "deadline", "loss", "budget"
  std::optional<Emulation> emulated{};
  std::optional<Fed> loader{};  ///< of all workers together, where they have said so
};

struct RunCalls {
  std::function<void(const std::string&)> say{};  ///< something a person wants to know at once
  std::function<void(const RunProgress&)> progress{};
};

/// Trains until the target, the budget's end or a signal: SIGINT or SIGTERM once saves and ends, twice ends at once. A
/// directory that holds a run already goes on with it: processes that are still alive are found again. One thread, one
/// such call in a process.
Result<RunSummary> drive(const RunInputs& inputs, const RunCalls& calls);

/// Whether workers can carry out this policy's changes; the error says which they cannot.
Result<void> check_policy(PolicyName policy);

/// Where its checkpoints go.
std::filesystem::path checkpoint_folder(const RunInputs& inputs);

/// `DIR/summary.json`.
Json summary_json(const RunSummary& summary);
/// Of a run that has ended; what it says of an emulation and the loader is left out.
Result<RunSummary> load_summary(const std::filesystem::path& directory);

}  // namespace mayfly
