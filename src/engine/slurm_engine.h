#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/program.h"
#include "engine/slurm_script.h"
#include "engine/slurm_text.h"
#include "wire/loop.h"

namespace mayfly {

/// Machines as elements of Slurm's job arrays, asked for and looked at with Slurm's own programs, one of which runs at
/// a time and never holds up the loop. An array is named after the first of its launches, so after a restart the queue
/// itself says which machines there are. Machines see the run's folder under the same path.
///
/// What is asked for while a program runs is put together into one call when it has ended. The queue is looked at every
/// few seconds, and soon after it was changed. A queue that does not answer changes nothing: machines stay what they
/// were.
class SlurmEngine final : public Engine {
 public:
  SlurmEngine(Loop& loop, SlurmRun run, Calls calls);
  static EngineChoice choice(SlurmRun run);

  void order(std::span<const Order> orders) override;
  void tell(int launch) override;
  void end(int launch) override;
  std::vector<Sighting> sights() const override;
  void adopt(std::span<const Order> kept) override;
  std::string tail(int launch) const override;
  void sweep() override;
  void finish() override;
  Expectation expected(const MachineRole& role) const override;

 private:
  struct Machine {
    MachineRole role{};
    Sighting::Stage stage = Sighting::Stage::ordered;
    std::string id{};  ///< for scancel; empty: not known yet
    std::string where{};
    Seconds since{};         ///< when it began to run
    bool submitted = false;  ///< Slurm may have it
    bool adopted = false;    ///< of an earlier engine, and not seen by this one yet
    bool ended = false;      ///< not wanted any more
    std::string doubt{};     ///< why it is not sure that Slurm has it
  };

  void see(Sighting sight);
  void say(const std::string& text);
  Sighting sight_of(int launch, const Machine& machine) const;
  void gone(int launch, Ending ending);

  // One program at a time.
  void next();
  void run(std::vector<std::string> words, const std::string& input, void (SlurmEngine::*then)(const ProgramEnd&));
  void submit();
  void submitted(const ProgramEnd& end);
  void cancel();
  void cancelled(const ProgramEnd& end);
  void notify();
  void look();
  void looked(const ProgramEnd& end);
  void look_in(Seconds time);

  // What the queue says.
  void compare(const std::vector<SlurmElement>& elements);
  void update(int launch, Machine& machine, const SlurmElement& element);
  void tell_waiting(const std::vector<SlurmElement>& elements);

  Loop& loop_;
  std::shared_ptr<int> here_ = std::make_shared<int>();  ///< what is posted may come when the engine is gone
  SlurmRun run_;
  Calls calls_;
  std::map<int, Machine> machines_{};  ///< ordered and not gone
  std::vector<int> orders_{};          ///< not submitted yet
  std::set<int> ends_{};
  std::set<int> tells_{};
  std::set<std::string> strays_{};  ///< of this run and in the queue, but not wanted
  std::vector<int> submitting_{};   ///< what the program that runs asks for
  bool look_due_ = false;
  bool finishing_ = false;
  std::unique_ptr<Program> program_{};
  Timer look_timer_;
  std::string trouble_{};  ///< the last that was told
  std::string waiting_{};  ///< likewise, of what machines wait for
};

}  // namespace mayfly
