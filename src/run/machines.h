#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/rng.h"
#include "run/engine.h"
#include "run/run.h"
#include "wire/loop.h"

namespace mayfly {

/// Which machines there are: as many as asked for, each replaced a while after it is lost, or as many as a trace has,
/// taken away with a notice. Machines ordered on demand come on top and stay.
class LocalMachines {
 public:
  struct Calls {
    /// A machine is gone for good.
    std::function<void(int launch, const Ending& ending)> ended{};
    std::function<void(const std::string&)> say{};
    /// Numbers of processes changed.
    std::function<void()> changed{};
  };
  /// `inputs` must outlive this object; `now` is the run's time, which a resumed run does not start at 0.
  LocalMachines(Loop& loop, const RunInputs& inputs, LocalEngine::Options options, std::function<Seconds()> now,
                Calls calls);

  /// Launches are numbered from `next_launch` on.
  Result<void> begin(int next_launch, const Json& processes);
  /// Orders more; none where there is no room for all.
  Result<void> acquire(const std::vector<MachineRole>& roles);
  /// One more of what there is, bought in this market.
  MachineRole spare_role(Market market) const;
  /// Not wanted any more: killed after a while if it does not leave by itself, and not replaced.
  void release(int launch, Seconds patience);
  bool released(int launch) const;
  /// Its worker is ready to train: whoever it succeeds may go.
  void settled(int launch);
  /// It had its notice: another is started now, not when it is gone.
  void replace_early(int launch);
  /// Silent: ended at once; replaced as if it had been lost.
  void kill(int launch) { engine_.kill(launch); }
  void kill_all() { engine_.kill_all(); }
  /// Nobody is started or taken away any more.
  void close() { closed_ = true; }

  const MachineRole& role(int launch) const { return engine_.role(launch); }
  bool runs(int launch) const { return engine_.runs(launch); }
  std::size_t running() const { return engine_.running(); }
  std::vector<int> launches() const { return engine_.launches(); }
  pid_t pid(int launch) const { return engine_.pid(launch); }
  std::filesystem::path log(int launch) const { return engine_.log(launch); }
  Json processes() const { return engine_.processes(); }
  int next_launch() const { return next_launch_; }

 private:
  Result<void> start(const MachineRole& role);
  void start_or_say(const MachineRole& role);
  void gone(int launch, const Ending& ending);
  void watch_lifetime(int launch);
  void succeed(int launch);
  void retire(int launch);
  void schedule_weather();
  void weather(const Change& change);
  void after(Seconds time, std::function<void()> call);
  const MachineRole& next_role() const;
  std::size_t count(bool server) const;
  Result<void> start_servers();

  Loop& loop_;
  const RunInputs& inputs_;
  std::function<Seconds()> now_;
  Calls calls_;
  LocalEngine engine_;
  Series weather_{};
  std::size_t change_at_ = 0;
  Timer weather_timer_;
  std::map<int, Timer> timers_{};
  int next_timer_ = 0;
  int next_launch_ = 0;
  struct Held {
    bool replace = true;  ///< when lost
    bool server = false;
  };
  std::map<int, Held> held_{};       ///< by launch
  std::vector<int> leaving_{};       ///< had their notice
  std::map<int, int> successors_{};  ///< by launch: whose lifetime ends, while it is awaited
  Rng rng_;
  bool closed_ = false;
};

}  // namespace mayfly
