#pragma once

#include <map>
#include <set>

#include "run/comparison.h"
#include "run/crew.h"
#include "run/unreached.h"

namespace mayfly {

/// Workers that add up their gradients among themselves. A formation is one mesh of workers: it is gathered (each says
/// where it can be reached), joined (all are connected and hold the state) and then trains step by step until a member
/// goes or the mesh breaks.
class MeshCrew final : public Crew {
 public:
  /// `formation`: the last number that was ever used.
  MeshCrew(int batch, std::int64_t formation) : batch_(batch), formation_(formation) {}

  using Crew::arrived;
  void arrived(WorkerId worker, const Held& held) override;
  void gone(WorkerId worker) override;
  bool assign(const Assign& command) override;
  void roll_back(const std::string& checkpoint, std::int64_t sample, Ledger ledger) override;
  void pause() override;
  bool form_again() override;
  std::optional<Step> hear(WorkerId from, const FromMember& message) override;
  void commit() override;
  using Crew::go_on;
  void go_on(std::int64_t end, bool evaluate) override;
  bool write_checkpoint() override;
  std::vector<Letter> letters() override;
  std::string record() const override;
  void restore(const std::string& record, std::int64_t committed) override;

  std::int64_t formation() const override { return formation_; }
  std::int64_t sample() const override { return sample_; }
  bool broken() const override { return broken_; }
  bool training() const override { return phase_ == Phase::training; }
  bool complete() const override;
  bool resting() const override { return !lease_; }
  bool mid_step() const override { return training() && !broken_; }
  /// Members and, while it hands its state over, a guest.
  const std::vector<WorkerId>& ranks() const override { return ranks_; }
  bool stands(WorkerId worker) const override;
  bool alive(WorkerId worker) const override { return holdings_.contains(worker); }
  std::vector<WorkerId> apart() const override;
  bool needed(WorkerId worker) const override;
  void set_aside(WorkerId worker) override { unreached_.remove(worker); }
  std::vector<WorkerId> awaited() const override;

 private:
  enum class Phase { idle, gathering, joining, training };
  struct Holding {
    std::optional<std::int64_t> sample{};  ///< that it has, or will have when it hears that its last step counts
    MeasuredSpeed speed{};
  };

  void form(int source, bool from_checkpoint, const std::string& checkpoint);
  void answered(WorkerId from);
  void gather(WorkerId from, const Reachable& message);
  void join(WorkerId from, const Formed& message);
  void broke(WorkerId from, const Broken& message);
  /// What was committed, or it will when it hears that its last step counts.
  bool holds(WorkerId worker) const;
  bool finished() const { return lease_ && reports_.size() == ranks_.size(); }
  std::optional<Step> count(WorkerId from, const StepDone& message);
  Step finished_step() const;
  void split(int samples);
  void send(WorkerId to, ToMember message) { letters_.push_back({to, std::move(message)}); }
  void send_all(const ToMember& message);
  int rank_of(WorkerId worker) const;
  /// It is gone, or its connection was, and with it what it was asked for.
  void ask_others_than(WorkerId worker);

  int batch_;
  std::int64_t formation_;
  std::int64_t generation_ = 0;
  Phase phase_ = Phase::idle;
  bool broken_ = false;
  bool untold_ = false;  ///< a step was committed, and no worker has heard of it
  bool checkpoint_wanted_ = false;
  std::optional<WorkerId> writer_{};  ///< was asked for a checkpoint and has not answered
  std::vector<WorkerId> members_{};   ///< as assigned
  std::vector<WorkerId> ranks_{};     ///< of the formation
  bool alone_ = false;                ///< paused, and one stands there to write a checkpoint
  std::optional<WorkerId> guest_{};   ///< not a member, there to hand over its state
  std::int64_t sample_ = 0;           ///< committed
  std::int64_t committed_in_ = -1;    ///< the formation whose step led there; -1: none, or it is not known
  std::int64_t end_ = 0;
  std::optional<SampleRange> lease_{};
  std::vector<int> counts_{};  ///< of the lease, by rank
  int steps_since_split_ = 0;
  Comparison comparison_{};
  std::map<WorkerId, Holding> holdings_{};  ///< of every worker alive
  std::map<WorkerId, std::string> addresses_{};
  std::set<WorkerId> formed_{};
  Unreached unreached_{};
  std::map<WorkerId, StepDone> reports_{};
  Ledger ledger_{};
  std::vector<Letter> letters_{};
};

}  // namespace mayfly
