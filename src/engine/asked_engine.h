#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/program.h"
#include "engine/provider.h"
#include "wire/loop.h"

namespace mayfly {

/// Machines of a provider whose own programs are asked for them, one at a time and never holding up the loop. After a
/// restart the provider's list itself says which machines there are. Machines see the run's folder under the same path.
///
/// What is asked for while a program runs is put together into one call when it has ended. The list is looked at every
/// few seconds, and soon after it was changed. A list that does not come changes nothing: machines stay what they were.
class AskedEngine final : public Engine {
 public:
  AskedEngine(Loop& loop, std::unique_ptr<Provider> provider, RunTerms terms, Calls calls);

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
    std::string id{};  ///< what the provider calls it; empty: not known yet
    std::string where{};
    Seconds since{};                 ///< when it began to run
    bool submitted = false;          ///< the provider may have it
    bool adopted = false;            ///< of an earlier engine, and not seen by this one yet
    bool ended = false;              ///< not wanted any more
    std::optional<Ending> failed{};  ///< and asked for its last words
    std::string doubt{};             ///< why it is not sure that the provider has it
  };

  void see(Sighting sight);
  void say(const std::string& text);
  Sighting sight_of(int launch, const Machine& machine) const;
  void gone(int launch, Ending ending);

  // One program at a time.
  void next();
  void run(ProgramCall question, void (AskedEngine::*then)(const ProgramEnd&));
  void submit();
  void submitted(const ProgramEnd& end);
  void cancel();
  void cancelled(const ProgramEnd& end);
  void notify();
  void told(const ProgramEnd& end);
  void ask_last_words();
  void tailed(const ProgramEnd& end);
  void look();
  void looked(const ProgramEnd& end);
  void look_in(Seconds time);

  // What the list says.
  void compare(const std::vector<Listed>& all);
  void update(int launch, Machine& machine, const Listed& listed);
  void bury(int launch, const std::string& id);
  void tell_waiting(const std::vector<Listed>& all);

  Loop& loop_;
  std::shared_ptr<int> here_ = std::make_shared<int>();  ///< what is posted may come when the engine is gone
  std::unique_ptr<Provider> provider_;
  RunTerms terms_;
  Calls calls_;
  std::map<int, Machine> machines_{};  ///< ordered and not gone
  std::vector<Order> orders_{};        ///< not submitted yet
  std::set<int> ends_{};
  std::set<int> tells_{};
  std::set<int> tails_{};
  std::map<int, std::string> strays_{};  ///< launch -> id, of this run and listed, but not wanted
  std::vector<Order> submitting_{};      ///< what the program that runs asks for
  int tailing_ = 0;                      ///< likewise: of which machine
  bool look_due_ = false;
  bool finishing_ = false;
  std::unique_ptr<Program> program_{};
  Timer look_timer_;
  std::string trouble_{};  ///< the last that was told
  std::string waiting_{};  ///< likewise, of what machines wait for
};

}  // namespace mayfly
