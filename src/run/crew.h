#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "control/event.h"
#include "data/ledger.h"
#include "wire/message.h"

namespace mayfly {

/// What is said to a worker or server, over its connection.
struct Letter {
  WorkerId to = 0;
  ToMember message{};
};

/// Those that train together, as the controller's process sees them: who stands where, what each holds, which samples
/// are leased, whose reports are in. Speaks the protocol of wire/message.h. Opens no socket and reads no clock, so a
/// test plays it message by message.
///
/// A *formation* is one set of connections between processes: its number is never used again, so a process that is
/// late is told apart by it. Several formations may serve one generation of the controller, and one several
/// generations.
class Crew {
 public:
  struct Part {
    WorkerId worker = 0;
    std::int64_t first = 0;  ///< place of its samples in the run
    std::int64_t samples = 0;
    std::int64_t read = 0;  ///< reading_of() them, as it says
    Seconds compute{};
    Seconds exchange{};
    Seconds wait{};  ///< for data, before computing
  };
  /// An update that every worker or server needed holds and none has applied. Of no samples: only a look at the
  /// validation set.
  struct Step {
    std::int64_t generation = 0;
    SampleRange range{};  ///< in the count of committed samples
    double loss = 0;
    std::optional<double> validation_loss{};
    std::optional<double> accuracy{};
    std::vector<Part> parts{};
    double staleness = 0;  ///< updates between what it was computed with and what it is applied to, mean over the parts
    std::optional<std::string> drift{};  ///< how the workers' states differ, where they were compared and do
  };
  virtual ~Crew() = default;

  /// What a worker or server says of its state: the samples it holds, and where they would end if a step counts that it
  /// has in its hands since a formation.
  struct Held {
    std::optional<std::int64_t> sample{};
    std::optional<std::int64_t> pending{};
    std::optional<std::int64_t> formation{};
  };
  /// A worker or server that can be given work.
  virtual void arrived(WorkerId worker, const Held& held) = 0;
  void arrived(WorkerId worker) { arrived(worker, {}); }
  virtual void gone(WorkerId worker) = 0;

  /// These train from its next sample on. False where no member alive holds that state: roll_back() must follow.
  virtual bool assign(const Assign& command) = 0;
  /// The assigned start from a checkpoint (empty: the first weights) with this ledger.
  virtual void roll_back(const std::string& checkpoint, std::int64_t sample, Ledger ledger) = 0;
  /// Nobody trains. Where a checkpoint is wanted, one that holds the state stays for it.
  virtual void pause() = 0;
  /// The same members once more: after a connection broke without one of them being lost. False as for assign().
  virtual bool form_again() = 0;

  /// What a worker or server says. A step comes back when the last report of it is in; commit() or nothing must follow.
  virtual std::optional<Step> hear(WorkerId from, const FromMember& message) = 0;
  /// The step counts. No worker hears of it before go_on(), or the next formation.
  virtual void commit() = 0;
  /// Leases what is next below `end`, the samples wanted. Where all is done the crew waits. `evaluate`: look at the
  /// validation set first.
  virtual void go_on(std::int64_t end, bool evaluate) = 0;
  void go_on(std::int64_t end) { go_on(end, false); }
  /// False where no member can write one just now; it is asked for as soon as one can, and again from others where the
  /// one that was asked goes without an answer.
  virtual bool write_checkpoint() = 0;

  /// What is to be sent, in order; empties it.
  virtual std::vector<Letter> letters() = 0;
  /// What must be stored with the step that hear() has just returned, and whenever a server comes: for restore().
  virtual std::string record() const { return {}; }
  /// After the controller's process started anew.
  virtual void restore(const std::string& record, std::int64_t committed) = 0;

  virtual std::int64_t formation() const = 0;
  /// Committed.
  virtual std::int64_t sample() const = 0;
  virtual bool broken() const = 0;
  virtual bool training() const = 0;
  /// All members it would train with are alive.
  virtual bool complete() const = 0;
  /// No member alive holds what was committed, though none that the controller counts was lost.
  virtual bool stateless() const { return false; }
  /// A change of members now would waste what the others have in hand.
  virtual bool mid_step() const = 0;
  /// No worker has anything in hand.
  virtual bool resting() const = 0;
  /// Those that train.
  virtual const std::vector<WorkerId>& ranks() const = 0;
  virtual bool stands(WorkerId worker) const = 0;
  virtual bool alive(WorkerId worker) const = 0;
  /// Where in the training a worker is: the first sample of what it has in hand, or the next one.
  virtual std::int64_t place_of(WorkerId /*worker*/) const { return sample(); }
  /// Members without whom all others can reach each other, as far as they have said that some cannot; as few as can be.
  virtual std::vector<WorkerId> apart() const { return {}; }
  /// No other holds what was committed, or takes it over yet.
  virtual bool needed(WorkerId /*worker*/) const { return false; }
  /// It is there, and is not to train for a while; arrived() may follow. What it holds may still be needed.
  virtual void set_aside(WorkerId worker) = 0;
  /// Those whose word is missing before the formation stands, or the step in hand is over.
  virtual std::vector<WorkerId> awaited() const = 0;

  // Of crews whose state is with servers.

  virtual bool has_servers() const { return false; }
  virtual std::vector<WorkerId> servers() const { return {}; }
  /// A server that has loaded everything.
  virtual void server_ready(WorkerId /*server*/, const std::string& /*address*/) {}
  /// It will be taken away.
  virtual void server_leaves(WorkerId /*server*/) {}
  /// Servers that will be taken away, and with them a shard that no server that stays holds.
  virtual std::vector<WorkerId> last_holders() const { return {}; }
  /// Servers that can go without the state go now, whatever is in hand.
  virtual void part() {}
  /// Samples of one lease where workers do not wait for each other; the job's batch where it was not said.
  virtual void set_batch(WorkerId /*worker*/, int /*batch*/) {}
};

/// An assignment of workers side by side.
Assign side_by_side(std::int64_t generation, std::vector<WorkerId> members, std::int64_t sample);

/// Shares of `samples` in proportion to the speeds, whole numbers that add up; each worker gets one where there
/// are enough. Where no speed is known (0) the mean of the others stands in.
std::vector<int> shares(int samples, const std::vector<double>& speeds);
/// Whether `wanted` shares are so much faster than `counts` that a change is worth it.
bool worth_a_change(const std::vector<int>& wanted, const std::vector<int>& counts, const std::vector<double>& speeds);

/// Samples per second of computing, smoothed over steps; 0: not known.
class MeasuredSpeed {
 public:
  void add(double samples, double seconds);
  double value() const { return value_; }

 private:
  double value_ = 0;
};

}  // namespace mayfly
