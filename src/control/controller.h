#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "control/event.h"
#include "control/policy.h"

namespace mayfly {

/// What was promised, and what the controller must hold to.
struct Promise {
  std::optional<double> samples{};
  std::optional<Seconds> deadline{};
  std::optional<Usd> budget{};
};

struct ControllerOptions {
  Promise promise{};
  Seconds settle{0};       ///< events this close together are answered by one decision
  int most_machines = 0;   ///< more are sent back; 0: no limit
  Seconds overstay{300};   ///< a machine that outlives its notice by this much is given back
  Seconds patience{1800};  ///< an order that is older is taken for forgotten
  UsdPerHour standing{};   ///< of what is paid for as long as the run lasts: its servers
  /// The target is not the end: a checkpoint that holds it is.
  bool save_at_target = false;
};

/// What the controller does about an event.
struct Reaction {
  std::vector<Command> commands{};
  std::vector<std::string> records{};  ///< journal lines, in order; empty unless journalling
};

/// Decides what the cluster does next. Reads no clock, opens no socket, draws no random number: the same events give
/// the same commands, so simulate/ and run/ drive this one class. Late, doubled and reordered events are weather: what
/// makes no sense any more is recorded and changes nothing. State diagram: ARCHITECTURE.md#controller
class Controller {
 public:
  /// `shapes` must outlive the controller.
  Controller(const Shapes& shapes, std::unique_ptr<Policy> policy, ControllerOptions options);

  Reaction step(Seconds now, const Event& event);
  /// Adds journal lines to reactions.
  void keep_journal(bool keep) { journal_ = keep; }

  std::int64_t generation() const { return generation_; }
  std::optional<int> shape() const { return shape_; }
  double committed() const { return committed_; }
  /// The samples promised, as far as is known now.
  std::optional<double> target() const { return options_.promise.samples; }
  double checkpointed() const { return checkpointed_; }
  Usd spent() const { return spent_; }
  /// Where nothing happens until then.
  Usd spent_by(Seconds now) const { return spent_ + rate_ * std::max(Seconds(0), now - accrued_); }
  bool finished() const { return finished_.has_value(); }
  std::optional<Finish::Why> why_finished() const { return finished_; }

 private:
  /// Of one kind of machines. They stay where they are in memory, so workers point at theirs.
  struct Kept {
    Holding holding{};             ///< but for `ordered` and `oldest`
    int paid = 0;                  ///< machines that are here, those about to go included
    std::deque<Seconds> orders{};  ///< when, of those that are not here yet
  };
  struct Worker {
    Kept* of = nullptr;
    UsdPerHour price{};
    bool leaving = false;  ///< has had its notice
    Seconds leaves{};      ///< by the notice
    bool known = false;    ///< was there at the last decision
  };

  void on(Seconds now, const Joined& event);
  void on(Seconds now, const Notice& event);
  void on(Seconds now, const Lost& event);
  void on(Seconds now, const StepCommitted& event);
  void on(Seconds now, const CheckpointDone& event);
  void on(Seconds now, const RolledBack& event);
  void on(Seconds now, const StateLost& event);
  void on(Seconds now, const Priced& event);
  void on(Seconds now, const Charged& event);
  void on(Seconds now, const Expected& event);
  void on(Seconds now, const Estimated& event);
  void on(Seconds now, const Measured& event);
  void on(Seconds now, const Tick& event);

  void accrue(Seconds now);
  void give_back_one(Seconds now, WorkerId newcomer);
  void remove(std::map<WorkerId, Worker>::iterator worker);
  void unsettle(Seconds now);
  Situation situation(Seconds now) const;
  void decide(Seconds now);
  void assign(Seconds now, const Decision& decision, int before, int lost);
  /// Orders and gives back, until so many of the kind are held or on their way. Returns how many that were known at
  /// the last decision were given back.
  int hold(Seconds now, const Want& want, std::string_view reason);
  Kept& kept(const MachineKind& kind);
  /// A machine has come: it may be one that was ordered.
  void fill_order(const MachineKind& kind);
  void forget_old_orders(Seconds now);
  /// It can be given no work any more: gone, or about to go.
  void unusable(const Worker& worker);
  std::vector<WorkerId> seating(const Shape& shape) const;
  bool reached() const;
  /// To be called when the target is reached: ends the training, or has it saved.
  void reach(Seconds now);
  void finish(Seconds now, Finish::Why why);
  void schedule(Seconds now);
  void command(Seconds now, Command command, std::string_view reason = {});
  void ignore(std::string_view why) { ignored_ = why; }
  int usable() const;
  std::vector<Holding> holdings() const;

  const Shapes& shapes_;
  std::unique_ptr<Policy> policy_;
  ControllerOptions options_;
  std::map<MachineKind, Kept> kinds_{};  ///< every kind that was ever seen or ordered
  std::map<WorkerId, Worker> workers_{};
  std::set<WorkerId> gone_{};  ///< every machine that was ever lost or released
  std::map<WorkerId, Notice> early_notices_{};
  std::int64_t generation_ = 0;
  std::optional<int> shape_{};
  std::vector<WorkerId> members_{};
  Mechanism mechanism_ = Mechanism::migrate;  ///< of the last assignment
  bool trained_ = false;                      ///< a step of this generation was accepted
  int known_ = 0;                             ///< usable machines at the last decision
  int known_lost_ = 0;                        ///< of them, unusable since
  int fresh_ = 0;                             ///< usable machines that came since
  double committed_ = 0;
  double checkpointed_ = 0;
  double ratio_ = 1;  ///< of measured to predicted speed; holds until it is measured again
  Usd spent_{};
  UsdPerHour rate_{};
  Seconds accrued_{};
  Seconds ready_{};
  std::optional<Seconds> due_{};    ///< of the next decision
  std::optional<Seconds> again_{};  ///< the policy's own wish
  std::optional<Seconds> woken_{};  ///< the Wake in force
  std::optional<Finish::Why> finished_{};
  bool journal_ = false;
  bool begun_ = false;          ///< a decision was ever made
  bool decided_ = false;        ///< in the step at hand
  std::string_view ignored_{};  ///< why the event at hand changes nothing
  Reaction reaction_{};
};

}  // namespace mayfly
