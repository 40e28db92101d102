#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "control/event.h"
#include "wire/message.h"

namespace mayfly {

/// Who is in a run: every worker and server that was welcomed and is not gone. A name is never given twice, also not
/// after a restart: whoever was lost might come back with another history.
class Roster {
 public:
  struct Member {
    int launch = -1;       ///< -1: came by itself
    std::int64_t pid = 0;  ///< of the process that said hello: a script's is not the machine's, which is its shell
    bool ready = false;    ///< has loaded everything
    bool joined = false;   ///< the controller knows it
    std::optional<Seconds> aside{};  ///< until then it is left out: others cannot reach it
    int times_aside = 0;
    bool leaving = false;             ///< had its notice
    Seconds leaves{};                 ///< when it will be taken
    bool server = false;              ///< holds parameters; the controller does not know it
    Seconds since{};                  ///< when it came
    std::string cache{};              ///< where others reach its cache; empty: it has none, or keeps it to itself
    std::string noted_cache{};        ///< likewise, as an earlier process knew it; counts once it is back
    std::optional<Seconds> heard{};   ///< its last word, if it has said any to this process
    std::optional<Seconds> closed{};  ///< when its connection broke
  };
  using Members = std::map<WorkerId, Member>;

  /// Returns its name.
  WorkerId admit(Member member);
  /// One that an earlier process has welcomed.
  void restore(WorkerId worker, Member member);
  /// Names up to this one have been given.
  void named_until(WorkerId last) { last_ = std::max(last_, last); }
  void remove(WorkerId worker) { members_.erase(worker); }
  /// The process of this launch asks anew, as its welcome was lost on the way. Returns its other names, which are
  /// forgotten: they must not be missed one day, and the machine ended with them.
  std::vector<WorkerId> forget_unready(int launch);

  /// None where it is not in the run.
  Member* find(WorkerId worker);
  const Member* find(WorkerId worker) const { return const_cast<Roster*>(this)->find(worker); }
  /// 0: no member's.
  WorkerId of_launch(int launch) const;
  const Members& all() const { return members_; }
  Members& all() { return members_; }
  bool empty() const { return members_.empty(); }

  /// Not heard for longer than that, or without a connection for so long.
  std::vector<WorkerId> silent(Seconds now, Seconds most) const;
  /// Those that share their caches.
  Neighbours neighbours() const;

 private:
  Members members_{};
  WorkerId last_ = 0;
};

/// w3, s4.
std::string short_name(WorkerId worker, const Roster::Member& member);
/// In a sentence: w3, server s4.
std::string name_of(WorkerId worker, const Roster::Member& member);

}  // namespace mayfly
