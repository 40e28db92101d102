#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/controller.h"

namespace mayfly {

/// A step that was really trained: what it covers and the step whose state it started from.
struct TrainedStep {
  int id = 0;
  int base = 0;
  double first = 0;
  double end = 0;
};

/// Keeps its own account of what the controller was told and what it answered, and says where the two do not agree.
/// Shares no code with the controller.
class FaultChecks {
 public:
  FaultChecks(const Shapes& shapes, const ControllerOptions& options, const std::vector<Offer>& offers)
      : shapes_(shapes),
        promise_(options.promise),
        patience_(options.patience),
        save_(options.save_at_target),
        offers_(offers) {}

  /// Before the controller is told: money flows up to `now`, and an overrun must have been seen coming.
  void before(Seconds now, const Event& event);
  /// After it was told. `step`: what a StepCommitted stands for.
  void after(Seconds now, const Event& event, const std::optional<TrainedStep>& step, const Reaction& reaction,
             const Controller& controller);

  const std::string& broken() const { return broken_; }
  int commits() const { return commits_; }
  int rollbacks() const { return rollbacks_; }
  bool finished() const { return finished_; }
  /// The end was a checkpoint of the target.
  bool saved_target() const { return saved_target_; }
  std::int64_t generation() const { return generation_; }
  /// The end of what is committed, and the state there.
  double end() const { return ledger_.empty() ? 0 : ledger_.back().end; }
  int state() const { return state_; }
  /// Machines that can be assigned, as far as was told.
  int usable(Market market) const;

 private:
  struct Told {
    bool joined = false;
    bool noticed = false;
    bool lost = false;
    bool released = false;
    Joined as{};
    bool here() const { return joined && !lost && !released; }
  };

  void hear(const Event& event);
  void fill_order(const Joined& joined);
  void obey(const Acquire& command);
  void obey(const Release& command);
  void obey(const Assign& command);
  void obey(const Pause& command);
  void obey(const Drain& command);
  void obey(const Checkpoint& command);
  void obey(const Finish& command);
  void obey(const Warn&) { require(!finished_, "training is over and a promise in danger"); }
  void obey(const Wake& command);
  void keep_ledger(const Event& event, const std::optional<TrainedStep>& step, double committed, double checkpointed);
  void roll_back(double to);
  void raise(std::int64_t generation);
  UsdPerHour rate() const;
  bool reached() const { return promise_.samples && end() >= *promise_.samples; }
  void require_end();
  void require(bool holds, const std::string& promise) {
    if (!holds && broken_.empty()) broken_ = promise;
  }

  const Shapes& shapes_;
  Promise promise_;
  Seconds patience_;
  bool save_;  ///< the target
  std::vector<Offer> offers_;
  double saved_ = 0;       ///< by checkpoints of what was committed
  bool assigned_ = false;  ///< somebody trains
  bool asked_ = false;     ///< for a checkpoint, since the target was reached by those assigned
  bool saved_target_ = false;
  std::vector<std::pair<Seconds, MachineKind>> orders_{};  ///< not filled yet
  std::map<WorkerId, Told> told_{};
  std::vector<TrainedStep> ledger_{};
  int state_ = 0;  ///< the step that made the state at the ledger's end
  int restored_ = 0;
  std::int64_t generation_ = 0;
  Usd spent_{};
  Seconds now_{};
  std::optional<Seconds> wake_{};
  bool finished_ = false;
  int commits_ = 0;
  int rollbacks_ = 0;
  std::string broken_{};
};

}  // namespace mayfly
