#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "control/event.h"

namespace mayfly {

/// Notices workers that live, as their heartbeats say, and do not get on with their step. How long is too long follows
/// from how long steps have taken. Reads no clock.
class StepWatch {
 public:
  struct Options {
    Seconds first{600};  ///< for a step while none is known: programs warm up, data is fetched for the first time
    Seconds floor{60};   ///< no step is late before that
    double times = 20;   ///< as often as the slowest of the last steps
  };
  /// What is to be done about those that are late.
  struct Findings {
    std::vector<WorkerId> explain{};  ///< are to say where they are
    std::vector<WorkerId> lose{};     ///< have had time for that
    bool stuck = false;               ///< all that are late wait for each other: none of them is at fault
    bool operator==(const Findings&) const = default;
  };
  /// What a worker is given: messages are repeated, and a word about what it has done before is none about this.
  struct Work {
    std::int64_t formation = 0;
    std::int64_t number = 0;  ///< its first sample or its lease
    bool operator==(const Work&) const = default;
  };
  explicit StepWatch(Options options) : options_(options) {}

  void given(Seconds now, WorkerId worker, Work work) { hands_[worker] = {.work = work, .since = now}; }
  /// What its heartbeat says: "data", "compute", "exchange" or nothing.
  void heard(WorkerId worker, const std::optional<std::string>& doing);
  /// Has done it, if it is what it has in hand.
  void done(Seconds now, WorkerId worker, Work work);
  /// Is not at work in this formation or an earlier one.
  void broke(WorkerId worker, std::int64_t formation);
  /// Has nothing in hand any more, whatever became of it.
  void drop(WorkerId worker) { hands_.erase(worker); }

  Seconds limit() const;
  /// Each is named once in each of the lists, for one piece of work.
  Findings look(Seconds now);
  /// Those that have something in hand and do not wait for others.
  std::vector<WorkerId> busy() const;
  /// For people: how long it has had its work, and where it is.
  std::string story(Seconds now, WorkerId worker) const;

 private:
  struct Hand {
    Work work{};
    Seconds since{};
    std::optional<std::string> doing{};
    std::optional<Seconds> asked{};  ///< to explain
  };
  Options options_;
  std::map<WorkerId, Hand> hands_{};
  std::deque<Seconds> recent_{};
};

}  // namespace mayfly
