#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/asked_engine.h"
#include "engine/machine_script.h"
#include "engine/ssh_script.h"

namespace mayfly {

/// Whether a host may have such a machine. Servers may be wherever machines stay, whatever the type.
bool suits(const SshHost& host, const MachineRole& role);

/// Computers that are asked over ssh, all at the same time. Which machines are where they say themselves, so nothing of
/// it is stored. A host that does not answer gets no more machines; those that it had are lost when their workers are
/// silent, and ended when it answers again.
class SshProvider final : public Provider {
 public:
  SshProvider(SshSpec spec, MachineProgram machine);
  static EngineChoice choice(SshSpec spec, MachineProgram machine);

  std::string name() const override { return "ssh"; }
  Seconds patience() const override { return Seconds(60); }
  Seconds interval() const override { return Seconds(5); }
  Expectation expected(const MachineRole& role) const override;
  std::vector<Order> together(std::span<const Order> waiting) const override {
    return {waiting.begin(), waiting.end()};
  }
  Result<ProgramCall> order(std::span<const Order> orders) override;
  std::vector<Granted> placed(std::span<const Order> orders, const ProgramEnd& end) override;
  ProgramCall list() override;
  Result<std::vector<Listed>> listed(const ProgramEnd& end) override;
  std::string unheard() const override;
  ProgramCall end(std::span<const Ordered> machines) override;
  ProgramCall tell(std::span<const Ordered> machines) override;
  ProgramCall tail(const Ordered& machine) override;
  std::string words_of(const ProgramEnd& end) const override;

 private:
  struct Host {
    std::string silent{};      ///< why it does not answer; empty: it does, as far as is known
    int others = 0;            ///< machines of other runs
    std::set<int> launches{};  ///< of this run
  };
  struct Machine {
    std::size_t host = 0;
    bool seen = false;
    bool ended = false;  ///< as far as it could be told
  };
  /// The host with the most room; a reason where there is none.
  Result<std::size_t> room_for(const MachineRole& role) const;
  void put(int launch, std::size_t host);
  ProgramCall each(std::span<const Ordered> machines, std::string (*text)(const std::string&, int));

  SshSpec spec_;
  MachineProgram machine_;
  std::vector<Host> hosts_;
  std::map<int, Machine> machines_{};          ///< by launch
  std::map<int, std::string> without_room_{};  ///< of the last orders
};

}  // namespace mayfly
