#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cloud/machine_kind.h"
#include "engine/engine.h"

namespace mayfly {

/// Which machines a run wants: so many workers and servers, each replaced a while after it is lost, or as soon as it is
/// known to go; a machine with a lifetime gets a successor before its end; refused orders are tried again ever more
/// rarely. Says what to ask of an engine and hears what the engine sees. Reads no clock and asks no engine itself.
class Fleet {
 public:
  struct Options {
    bool starts = true;                ///< otherwise machines come by themselves
    int workers = 1;                   ///< at a time
    std::vector<MachineRole> roles{};  ///< of the workers, one each; at least one
    int servers = 0;
    MachineRole server{};              ///< of each of them
    std::optional<UsdPerHour> rent{};  ///< of a worker on demand, where prices are known
    Seconds replacement{1};            ///< from a loss to the order of another
    /// For patience with machines that do not say a word. None: it has no end.
    std::function<Expectation(const MachineRole&)> expected{};
  };
  /// What is to be asked of the engine now, in this order.
  struct Wishes {
    std::vector<Order> orders{};
    std::vector<int> tells{};
    std::vector<int> ends{};
    std::vector<std::string> sayings{};
    bool operator==(const Wishes&) const = default;
  };
  /// One machine that was ordered and is not gone.
  struct Launch {
    MachineRole role{};
    Sighting::Stage stage = Sighting::Stage::ordered;
    std::string where{};
    pid_t pid = 0;
    Seconds ordered{};
    std::optional<Seconds> since{};    ///< paid for
    std::optional<Seconds> counted{};  ///< until then, by the names of workers that are not there any more
    bool wanted = true;                ///< replaced when it is lost
    bool greeted = false;              ///< its worker has said Hello to this process
    int worker = 0;                    ///< the name it was given; 0: none yet
    bool joined = false;               ///< its money is counted by the name of its worker
    bool released = false;             ///< told to leave by itself
  };

  explicit Fleet(Options options) : options_(std::move(options)) {}

  /// Wants what is missing.
  void begin(Seconds now);
  /// Wants nothing any more; what there is stays until it is ended.
  void close();
  /// Orders more; none where there is no room for all.
  Result<void> acquire(Seconds now, const std::vector<MachineRole>& roles);
  /// One more like those there are, of this kind.
  MachineRole spare_role(const MachineKind& kind) const;

  void seen(Seconds now, const Sighting& sight);
  /// Workers of this kind, there or to come, cost so much from now on. False: they did before.
  bool priced(const MachineKind& kind, UsdPerHour price);
  /// Its worker has said its first word, and goes by this name.
  void greeted(int launch, int worker);
  /// The controller knows this worker, and counts what its machine costs.
  void joined(int worker);
  /// It does not any more; the machine may stay, and its worker come back under another name.
  void parted(Seconds now, int worker);
  /// From when on nobody has counted what a machine costs; none: all is counted, or it is not paid for yet.
  std::optional<Seconds> uncounted_since(const Launch& launch) const;
  /// Its worker is ready to train: the machine it succeeds may go.
  void settled(Seconds now, int launch);
  /// It had its notice: another is ordered now, not when it is gone.
  void leaves(Seconds now, int launch);
  /// Not wanted any more, and not replaced: others may be ordered while it is still at something.
  void give_up(int launch);
  /// Likewise, and ended after a while if it does not leave by itself.
  void release(Seconds now, int launch, Seconds patience);
  /// Ended at once; replaced as if it had been lost.
  void end(int launch);
  void end_all();
  /// In a rehearsal: told now.
  void tell(int launch) { wishes_.tells.push_back(launch); }
  /// Ended then, if it is still there.
  void end_at(Seconds time, int launch);

  Wishes wishes(Seconds now);
  /// When wishes() should be asked next.
  std::optional<Seconds> due() const;

  /// None where it is gone or was never ordered.
  const Launch* find(int launch) const;
  const std::map<int, Launch>& launches() const { return launches_; }
  /// Of the worker or server of this name; -1: none.
  int launch_of(int worker) const;
  /// Ordered a while ago, and not among what the engine says it has: forgotten, or gone without a word.
  std::vector<int> unknown_to(Seconds now, const std::vector<Sighting>& all) const;
  /// Was ordered by this run at any time.
  bool numbered(int launch) const { return launch >= 0 && launch < next_launch_; }

  /// Everything ordered and not gone, for restore() in a later process.
  std::string record() const;
  void restore(Seconds now, std::string_view record);
  std::vector<Order> kept() const;

 private:
  struct Task {
    enum class Kind {
      fill,     ///< as many as are missing
      refill,   ///< one, if there are fewer than there should be
      replace,  ///< one like `role`
      succeed,
      retire,
      await,  ///< its first word
      end,
    } kind = Kind::fill;
    int launch = -1;
    MachineRole role{};
  };

  void at(Seconds time, Task task) { tasks_.emplace(time, std::move(task)); }
  void perform(Seconds now, const Task& task);
  int order(Seconds now, const MachineRole& role, int instead = -1);
  void fill(Seconds now);
  void came(Seconds now, int launch, Launch& it, const Sighting& sight);
  void gone(Seconds now, int launch, const Ending& ending);
  void succeed(Seconds now, int launch);
  void retire(Seconds now, int launch);
  /// Between an order that came to nothing and the next.
  Seconds next_pause();
  int count(bool server) const;
  bool missing(bool server) const;
  /// The last workers were given back, what was to come in their place did not, and none is on its way.
  bool deserted() const;
  MachineRole next_role() const;

  Options options_;
  bool closed_ = true;  ///< until begin()
  int next_launch_ = 0;
  std::map<int, Launch> launches_{};
  std::multimap<Seconds, Task> tasks_{};
  std::map<int, int> successors_{};  ///< by launch: whose lifetime ends, while it is awaited
  int refusals_ = 0;                 ///< in a row
  std::string refused_{};            ///< the last reason that was told
  Wishes wishes_{};
};

}  // namespace mayfly
