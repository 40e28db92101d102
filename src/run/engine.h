#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "cloud/instance_type.h"
#include "run/limits.h"
#include "wire/loop.h"

namespace mayfly {

/// What a process of the local engine plays: a machine of this type, bought in this market.
struct MachineRole {
  std::string type = "local";
  Market market = Market::spot;
  UsdPerHour price{};
  bool server = false;  ///< holds parameters instead of training
  int batch = 0;        ///< samples of its updates where workers do not wait for each other; 0: the job's
  MachineLimits limits{};
  bool operator==(const MachineRole&) const = default;
};

/// What workers run in place of mayfly-train: the job's own program. docs/python.md
struct ScriptCommand {
  std::string text{};                 ///< for the shell
  std::filesystem::path directory{};  ///< to run in
  std::vector<std::pair<std::string, std::string>> environment{};
};

/// How a process ended, for people, and whether it was its own doing: to be killed is weather.
struct Ending {
  std::string how{};
  bool failed = false;
};

/// Machines as processes of this one. Each launch has a number of its own that is never used again. Processes
/// outlive the engine: whoever starts it anew adopts them.
class LocalEngine {
 public:
  struct Options {
    std::filesystem::path program{};  ///< mayfly-train
    std::vector<std::string> arguments{};
    std::optional<ScriptCommand> script{};  ///< of workers; servers are always mayfly-train's
    std::string join{};                     ///< HOST:PORT of the controller, for scripts
    std::filesystem::path logs{};
    std::string token{};
    Seconds notice{30};  ///< what a machine is told it has left
    int capacity = 1;    ///< machines meant to run at a time: this machine's cores are dealt out among them
  };
  LocalEngine(Loop& loop, Options options, std::function<void(int launch, const Ending& ending)> ended);

  Result<void> start(int launch, const MachineRole& role);
  /// The preemption notice: SIGTERM.
  void notify(int launch);
  void kill(int launch);
  void kill_all();
  /// It is about to go: who is started next gets its cores.
  void vacate(int launch);

  bool runs(int launch) const { return processes_.contains(launch); }
  std::size_t running() const { return processes_.size(); }
  pid_t pid(int launch) const;
  /// Since its process started.
  Seconds age(int launch) const;
  const MachineRole& role(int launch) const { return processes_.at(launch).role; }
  std::vector<int> launches() const;
  std::filesystem::path log(int launch) const;

  /// For whoever comes after: enough to find the processes again, and to tell them from others with their numbers.
  Json processes() const;
  void adopt(const Json& processes);

 private:
  struct Process {
    pid_t pid = 0;
    long long started = 0;  ///< ticks since boot, from /proc
    int seat = 0;           ///< which cores
    MachineRole role{};
    std::unique_ptr<DescriptorWatch> watch{};
  };
  int free_seat() const;
  void watch(int launch, Process process);
  void reap(int launch);
  void become(int seat, const MachineRole& role, const std::string& log, const std::string& launch) const;
  void become_script(const std::string& launch) const;

  Loop& loop_;
  Options options_;
  std::function<void(int, const Ending&)> ended_;
  std::map<int, Process> processes_{};
};

/// Cores of `cores` for seat `seat` of `capacity`: an equal part each, at least one; seats share where there are more.
std::vector<int> seat_cores(int seat, int capacity, int cores);

}  // namespace mayfly
