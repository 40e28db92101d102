#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "engine/program.h"

namespace mayfly {

// What no provider's words may go beyond: the rest is a mistake of theirs.
inline constexpr int kMostLaunches = 1 << 20;
inline constexpr Seconds kMostAge{1e9};

/// A machine as its provider lists it.
struct Listed {
  enum class Phase {
    waiting,
    starting,
    running,
    ending,  ///< it will not come back, and its program may still be at something
    over,
  };
  int launch = 0;
  std::string id{};  ///< what its provider calls it
  Phase phase = Phase::running;
  std::string where{};  ///< for people
  std::string waits{};  ///< of one that waits, what for: "in partition spot: Resources"; empty: nothing worth saying
  Seconds age{};        ///< since it is paid for
  Ending ending{};  ///< of one that is over and once ran; one that never did was refused, unless it failed or finished
  bool operator==(const Listed&) const = default;
};

/// One call of another's program.
struct ProgramCall {
  std::vector<std::string> words{};  ///< the program and its arguments
  std::string input{};
};

/// What became of one order.
struct Granted {
  std::string id{};       ///< empty: see the others
  std::string refused{};  ///< in the provider's words
  std::string doubt{};    ///< why it is not known whether the provider has it
  bool operator==(const Granted&) const = default;
};

/// A launch as the provider calls it.
struct Ordered {
  int launch = 0;
  std::string id{};
};

/// Words for a provider of machines and what its answers mean. Asks nothing itself: AskedEngine does.
class Provider {
 public:
  virtual ~Provider() = default;

  virtual std::string name() const = 0;  ///< for people: "Slurm"
  virtual Seconds patience() const = 0;  ///< with one call
  virtual Seconds interval() const = 0;  ///< between two looks while machines are waited for; otherwise twice that
  virtual Expectation expected(const MachineRole& role) const = 0;

  /// Which of the orders that wait one call asks for; the first is among them.
  virtual std::vector<Order> together(std::span<const Order> waiting) const = 0;
  /// An error refuses all of them.
  virtual Result<ProgramCall> order(std::span<const Order> orders) = 0;
  /// Of each of them, in their order, after a call that has ended.
  virtual std::vector<Granted> placed(std::span<const Order> orders, const ProgramEnd& end) = 0;

  virtual ProgramCall list() = 0;
  /// Machines of this run, wanted or not.
  virtual Result<std::vector<Listed>> listed(const ProgramEnd& end) = 0;

  /// Likewise: whom the last list did not hear of, and why, for people; empty: nobody.
  virtual std::string unheard() const { return ""; }

  /// What is over is ended, too: a machine that has stopped may cost something, or be remembered, until then.
  virtual bool buries() const { return false; }
  virtual ProgramCall end(std::span<const Ordered> machines) = 0;
  virtual ProgramCall tell(std::span<const Ordered> machines) = 0;
  /// For the last lines of one that failed, where they are not in its log; no words: they are nowhere.
  virtual ProgramCall tail(const Ordered&) { return {}; }
  virtual std::string words_of(const ProgramEnd& end) const { return end.output; }
};

/// Where there is no loop: waits for the answer.
ProgramEnd answer_to(const ProgramCall& question, Seconds patience);

}  // namespace mayfly
