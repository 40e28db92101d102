#pragma once

#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/rng.h"
#include "engine/engine.h"
#include "engine/script_command.h"
#include "trace/trace.h"
#include "wire/loop.h"

namespace mayfly {

/// Machines as processes of this computer. Each carries the run's tag and its launch in its environment
/// (engine/tagged.h), by which adopt() finds it again, and what it has started is ended with it.
///
/// With weather, spot workers are as many as a trace has: orders wait for room, and when the trace takes machines away
/// some are told, and killed when their notice is over. Machines on demand and servers do not feel it. Where the trace
/// has prices, spot workers of its type cost them.
class LocalEngine final : public Engine {
 public:
  struct Options {
    std::string run = "run";          ///< the run's tag; no other run on this computer has it
    std::filesystem::path program{};  ///< mayfly-train
    std::vector<std::string> arguments{};
    std::optional<ScriptCommand> script{};  ///< of workers; servers are always mayfly-train's
    std::string join{};                     ///< HOST:PORT of the controller, for scripts
    std::filesystem::path logs{};
    std::string token{};
    Seconds notice{30};  ///< what a machine is told it has left
    int capacity = 1;    ///< machines meant to run at a time: this computer's cores are dealt out among them
    std::optional<Series> weather{};  ///< machines come and go as in a trace
    double speed = 1;                 ///< seconds of the trace per second
    std::function<Seconds()> now{};   ///< the run's time, which a resumed run does not start at 0; for weather
    std::uint64_t seed = 1;           ///< of who is taken
  };
  LocalEngine(Loop& loop, Options options, Calls calls);
  /// What the run's terms say is filled in when it starts; `arguments` are those beside --join.
  static EngineChoice choice(Options options);

  void order(std::span<const Order> orders) override;
  void tell(int launch) override;
  void end(int launch) override;
  std::vector<Sighting> sights() const override;
  void adopt(std::span<const Order> kept) override;
  std::string tail(int launch) const override;
  void sweep() override;
  void finish() override {}  // whatever is asked for is done at once
  Expectation expected(const MachineRole& role) const override;

  /// What it expects of machines of this role, before there is an engine.
  static Expectation usual(const MachineRole& role, bool script, Seconds notice);
  std::size_t running() const { return processes_.size(); }
  pid_t pid(int launch) const;
  std::filesystem::path log(int launch) const;

 private:
  struct Process {
    pid_t pid = 0;
    long long started = 0;  ///< ticks since boot, from /proc
    int berth = 0;          ///< which cores
    MachineRole role{};
    bool told = false;  ///< had its notice
    std::unique_ptr<DescriptorWatch> watch{};
  };
  void start(const Order& order);
  tl::expected<pid_t, Ending> spawn(const Order& order, int berth) const;
  int berth_for(const Order& order);
  int free_berth() const;
  void watch(int launch, Process process);
  void reap(int launch);
  void end_leftovers(int launch, pid_t machine) const;
  void see(Sighting sight);
  Sighting sight_of(int launch, const Process& process) const;
  void become(int berth, const Order& order, const std::string& log) const;
  void become_script(const std::string& launch) const;

  // Weather.
  bool feels_weather(const MachineRole& role) const;
  bool room() const;
  void fill_room();
  void schedule_weather();
  void take(const Change& change);
  void await_prices(const MachineRole& role);
  /// Says what is new of prices, and waits for the next.
  void tell_prices();

  Loop& loop_;
  std::shared_ptr<int> here_ = std::make_shared<int>();  ///< what is posted may come when the engine is gone
  Options options_;
  Calls calls_;
  std::map<int, Process> processes_{};
  std::deque<Order> waiting_{};  ///< for room
  std::size_t change_at_ = 0;
  Timer weather_timer_;
  std::size_t price_at_ = 0;
  std::set<MachineKind> priced_{};  ///< kinds that were ordered and cost what the trace says
  Timer price_timer_;
  std::map<int, Timer> kills_{};  ///< by launch: its notice is over
  Rng rng_;
};

/// Cores of `cores` for berth `berth` of `capacity`: an equal part each, at least one; berths share where there are
/// more.
std::vector<int> berth_cores(int berth, int capacity, int cores);

}  // namespace mayfly
