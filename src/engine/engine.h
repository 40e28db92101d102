#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/role.h"

namespace mayfly {

class Loop;

/// One machine that a run wants. Launches are numbered over the whole run, and no number is used again: it is the
/// machine's name (RUN-LAUNCH) wherever machines have names.
struct Order {
  int launch = 0;
  MachineRole role{};
  int instead = -1;  ///< whose place it takes, where that one is about to go
  bool operator==(const Order&) const = default;
};

/// What the engine gives to the machine of a launch, in MAYFLY_MACHINE, and to nobody else.
std::string machine_name(const std::string& run, int launch);

/// How a machine ended.
struct Ending {
  enum class Kind {
    preempted,  ///< taken away: weather
    finished,   ///< its program ended by itself, and well
    failed,     ///< its program ended by itself, and not well
    refused,    ///< it never came: no capacity, no quota, no such type
  };
  Kind kind = Kind::preempted;
  std::string how{};  ///< for people
  std::string log{};  ///< where its last words are, for people; empty: there are none
  bool operator==(const Ending&) const = default;
};

/// What an engine knows of one launch.
struct Sighting {
  int launch = 0;
  enum class Stage {
    ordered,   ///< asked for; costs nothing
    starting,  ///< paid for, and its worker cannot run yet
    running,
    gone,  ///< for good; `ending` says how
  } stage = Stage::ordered;
  std::string where{};  ///< for people: "pid 4711", a host, a pod
  pid_t pid = 0;        ///< of a process of this computer
  Seconds age{};        ///< since it is paid for
  std::optional<Ending> ending{};
  bool operator==(const Sighting&) const = default;
};
std::string_view name(Sighting::Stage stage);

/// What can be expected of a machine, for patience and for plans.
struct Expectation {
  Seconds start{};   ///< from the order to the first word of its worker, once there is room
  Seconds notice{};  ///< from the word that it will be taken to its end
};

/// Gets machines for a run, late, in part or never, and starts a worker or server on each: `mayfly-train` or the job's
/// script, which then joins by itself. Machines outlive the engine; a controller that starts it anew adopts them. That
/// a worker is lost is never decided by an engine's word alone: the worker's own silence does that.
class Engine {
 public:
  struct Calls {
    /// What is new, from the loop and never from within a call to the engine. May be late, repeat itself, or skip a
    /// stage; nothing follows on `gone`.
    std::function<void(const Sighting&)> seen{};
    /// What a machine of a kind costs from now on, where the engine hears of prices; likewise, and may repeat itself.
    std::function<void(const MachineKind&, UsdPerHour)> priced{};
    /// Something that a person should know of machines that are waited for; likewise.
    std::function<void(const std::string&)> said{};
  };
  virtual ~Engine() = default;

  /// Returns at once. A launch that was ordered before is not ordered again. A refusal is an ending, and comes later.
  virtual void order(std::span<const Order> orders) = 0;
  /// The notice that it will be taken, where the engine can give one.
  virtual void tell(int launch) = 0;
  /// Ends it now; also what was ordered and has not come. Ending it twice is ending it.
  virtual void end(int launch) = 0;
  /// Of everything ordered and not gone.
  virtual std::vector<Sighting> sights() const = 0;
  /// After a restart: what was ordered and is not known to be gone. Machines of this run that are not among them are
  /// ended; of those among them that are not there any more it is said that they are gone.
  virtual void adopt(std::span<const Order> kept) = 0;
  /// The last lines that its program wrote.
  virtual std::string tail(int launch) const = 0;
  /// Ends everything of this run, however it came.
  virtual void sweep() = 0;
  /// The run is over: returns when all that was asked for is done or has failed, which may take seconds.
  virtual void finish() = 0;
  virtual Expectation expected(const MachineRole& role) const = 0;
};

/// What machines have to know of their run; known once its controller listens.
struct RunTerms {
  std::string run{};   ///< its tag; no other run has it
  std::string join{};  ///< HOST:PORT of the controller
  std::string token{};
  std::filesystem::path directory{};  ///< of the run: `token` and `logs` lie in it
  std::function<Seconds()> now{};     ///< the run's time, which a resumed run does not start at 0
};

/// An engine that was chosen, and can be started when the run is there.
struct EngineChoice {
  /// As Engine::expected(), before there is one.
  std::function<Expectation(const MachineRole&)> expected{};
  std::function<std::unique_ptr<Engine>(Loop&, const RunTerms&, Engine::Calls)> start{};
};

}  // namespace mayfly
