#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "control/event.h"
#include "data/ledger.h"
#include "wire/message.h"

namespace mayfly {

/// The workers that train together, as the controller's process sees them: who stands where, what each holds, which
/// samples are leased, whose reports are in. Speaks the protocol of wire/message.h. Opens no socket and reads no clock,
/// so a test plays it message by message.
///
/// A *formation* is one mesh of workers: it is gathered (everyone says where it can be reached), joined (everyone is
/// connected and holds the state) and then trains step by step until a member goes or the mesh breaks. Several
/// formations may serve one generation of the controller.
class Crew {
 public:
  struct Letter {
    WorkerId to = 0;
    Message message{};
  };
  struct Part {
    WorkerId worker = 0;
    int samples = 0;
    Seconds compute{};
    Seconds exchange{};
  };
  /// A step that everyone holds and nobody has applied. Of no samples: only a look at the validation set.
  struct Step {
    std::int64_t generation = 0;
    SampleRange range{};
    double loss = 0;
    std::optional<double> validation_loss{};
    std::optional<double> accuracy{};
    std::vector<Part> parts{};
  };

  /// `formation`: the last number that was ever used.
  Crew(int batch, std::int64_t formation) : batch_(batch), formation_(formation) {}

  /// A worker that can be given work. One that was here before says what its weights hold, and where they would be if
  /// the step in its hands counts.
  void arrived(WorkerId worker, std::optional<std::int64_t> sample = {}, std::optional<std::int64_t> pending = {});
  void gone(WorkerId worker);

  /// These train from `sample` on. False where nobody alive holds it: roll_back() must follow.
  bool assign(std::int64_t generation, std::vector<WorkerId> members, std::int64_t sample);
  /// The assigned start from a checkpoint (empty: the first weights) with this ledger.
  void roll_back(const std::string& checkpoint, std::int64_t sample, Ledger ledger);
  void pause();
  /// The same members once more: after the mesh broke without anybody being lost.
  bool form_again();
  /// A ledger to go on with, when the controller starts anew.
  void restore(Ledger ledger) { ledger_ = std::move(ledger); }

  /// What a worker says. A step comes back when the last report of it is in; commit() or nothing must follow.
  std::optional<Step> hear(WorkerId from, const Message& message);
  /// The step counts. Nobody hears of it before go_on(), or the next formation.
  void commit();
  /// Leases the next step below `end`, the samples wanted. Where all is done the crew waits. `evaluate`: look at the
  /// validation set first.
  void go_on(std::int64_t end, bool evaluate = false);
  /// False where nobody can write one just now; it is asked for as soon as somebody can, and again from others where
  /// the one who was asked goes without an answer.
  bool write_checkpoint();

  /// What is to be sent, in order; empties it.
  std::vector<Letter> letters();

  std::int64_t formation() const { return formation_; }
  std::int64_t sample() const { return sample_; }
  bool broken() const { return broken_; }
  bool training() const { return phase_ == Phase::training; }
  /// Members and, while it hands its state over, a guest.
  const std::vector<WorkerId>& ranks() const { return ranks_; }
  bool stands(WorkerId worker) const;
  bool alive(WorkerId worker) const { return holdings_.contains(worker); }
  const Ledger& ledger() const { return ledger_; }
  /// Those whose report on the step in hand is missing.
  std::vector<WorkerId> awaited() const;

 private:
  enum class Phase { idle, gathering, joining, training };
  struct Holding {
    std::optional<std::int64_t> sample{};
    std::optional<std::int64_t> pending{};
    double speed = 0;  ///< samples per second of computing, smoothed; 0: not known
    bool reaches(std::int64_t wanted) const { return sample == wanted || pending == wanted; }
  };

  void form(int source, bool from_checkpoint, const std::string& checkpoint);
  void gather(WorkerId from, const Reachable& message);
  void join(WorkerId from, const Formed& message);
  std::optional<Step> count(WorkerId from, const StepDone& message);
  Step finished_step() const;
  void split(int samples);
  void send(WorkerId to, Message message) { letters_.push_back({to, std::move(message)}); }
  void send_all(const Message& message);
  int rank_of(WorkerId worker) const;
  /// It is gone, or its connection was, and with it what it was asked for.
  void ask_others_than(WorkerId worker);

  int batch_;
  std::int64_t formation_;
  std::int64_t generation_ = 0;
  Phase phase_ = Phase::idle;
  bool broken_ = false;
  bool untold_ = false;  ///< a step was committed, and nobody has heard of it
  bool checkpoint_wanted_ = false;
  std::optional<WorkerId> writer_{};  ///< was asked for a checkpoint and has not answered
  std::vector<WorkerId> members_{};   ///< as assigned
  std::vector<WorkerId> ranks_{};     ///< of the formation
  std::optional<WorkerId> guest_{};   ///< not a member, there to hand over its state
  std::int64_t sample_ = 0;           ///< committed
  std::int64_t end_ = 0;
  std::optional<SampleRange> lease_{};
  std::vector<int> counts_{};  ///< of the lease, by rank
  int steps_since_split_ = 0;
  std::map<WorkerId, Holding> holdings_{};  ///< of everyone alive
  std::map<WorkerId, std::string> addresses_{};
  std::set<WorkerId> formed_{};
  std::map<WorkerId, StepDone> reports_{};
  Ledger ledger_{};
  std::vector<Letter> letters_{};
};

/// Shares of `samples` in proportion to the speeds, whole numbers that add up; everyone gets one where there are
/// enough. Where no speed is known (0) the mean of the others stands in.
std::vector<int> shares(int samples, const std::vector<double>& speeds);

}  // namespace mayfly
