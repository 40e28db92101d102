#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "run/acts.h"
#include "run/run.h"
#include "storm/account.h"

namespace mayfly::storm {

/// Keeps its own account of machines: what was ordered, what is paid for, who has said a word and when, who was told to
/// go. Knows only what the session is told and what it wants done; shares no code with it or its fleet. All times are
/// the run's.
class Inventory {
 public:
  Inventory(Account& account, const RunInputs& inputs) : account_(account), inputs_(inputs) {}

  // What the session is told.

  /// A process has begun; what another one knew and did not store is forgotten.
  void began(Seconds now);
  void seen(Seconds now, const Sighting& sight);
  void listed(Seconds now, const std::vector<Sighting>& all);
  void greeted(Seconds now, int launch, WorkerId worker);
  void heard(Seconds now, WorkerId worker, const FromMember& message);
  void closed(WorkerId worker);
  void signalled(Seconds now);

  // What it wants done.

  void ordered(Seconds now, const Order& order);
  void wrote(Seconds now, const Letter& letter);
  void formed(Seconds now);
  void recorded(const Record& record);

  /// Nobody is waited for too long.
  void look(Seconds now);
  /// The engine holds these; of the machines about to go, those `leaving` have been told.
  void held(const std::vector<int>& launches, const std::set<int>& leaving);
  /// All that was paid for workers, until the training was over; none before that.
  std::optional<Usd> spent() const;
  bool dismissed(int launch) const { return dismissed_.contains(launch); }

 private:
  struct Machine {
    MachineRole role{};
    Seconds ordered{};
    std::optional<Seconds> since{};  ///< paid for, as this process was told
    std::optional<Seconds> from{};   ///< likewise, of one that is ready
    bool ready = false;
    bool gone = false;
    std::optional<Seconds> counted{};  ///< until then, by the workers that it had
    Seconds seconds{};                 ///< counted
  };
  struct Heard {
    Seconds time{};
    Seconds left{};
    bool replaced = false;
  };
  /// A lease that is out, while others are given theirs: how many each.
  struct Out {
    std::int64_t lease = 0;
    std::map<WorkerId, int> others{};
  };
  /// From when on its money is not counted yet.
  static std::optional<Seconds> uncounted(const Machine& machine) {
    return machine.counted ? machine.counted : machine.since;
  }
  void leased(WorkerId worker, const Lease& lease);
  void taken_back(WorkerId worker);
  void committed(const StepCommitted& step);
  void gone(Seconds now, Machine& machine);
  void ended(Seconds now, WorkerId worker);
  void lost(Seconds now, WorkerId worker);
  Machine* machine_of(WorkerId worker);
  bool leaves(int launch) const { return dismissed_.contains(launch) || given_back_.contains(launch); }

  Account& account_;
  const RunInputs& inputs_;
  Seconds began_{};
  Seconds formed_{};
  std::optional<Seconds> signal_{};    ///< to this process
  int in_hand_ = 0;                    ///< steps, when it came, at the most
  int after_signal_ = 0;               ///< steps
  std::optional<Seconds> finished_{};  ///< the training
  std::map<int, Machine> machines_{};  ///< by launch
  std::map<WorkerId, int> launches_{};
  std::map<WorkerId, Seconds> spoke_{};  ///< last, of those that are connected
  std::map<WorkerId, Heard> notices_{};  ///< that this process has heard
  std::set<int> noticed_{};              ///< launches whose notice some process has heard
  std::set<int> dismissed_{};            ///< launches
  std::set<int> given_back_{};           ///< launches; they go when what they hold is saved
  std::set<WorkerId> unable_{};
  std::set<int> apart_{};                ///< launches that others say they do not reach, or that say so
  std::map<WorkerId, Seconds> given_{};  ///< when it was given what it has in hand
  std::map<WorkerId, Out> out_{};
  std::map<WorkerId, Seconds> paid_from_{};  ///< of those that have joined and are not lost
};

}  // namespace mayfly::storm
