#pragma once

#include <string>
#include <vector>

#include "engine/asked_engine.h"
#include "engine/machine_script.h"
#include "job/engine_spec.h"

namespace mayfly {

/// A program of the user's that gets machines from wherever it knows: docs/engines.md#any-program
class ExecProvider final : public Provider {
 public:
  ExecProvider(ExecSpec spec, MachineProgram machine);
  static EngineChoice choice(ExecSpec spec, MachineProgram machine);

  std::string name() const override;
  Seconds patience() const override { return spec_.patience; }
  Seconds interval() const override { return spec_.every; }
  Expectation expected(const MachineRole& role) const override;
  std::vector<Order> together(std::span<const Order> waiting) const override {
    return {waiting.begin(), waiting.end()};
  }
  Result<ProgramCall> order(std::span<const Order> orders) override;
  std::vector<Granted> placed(std::span<const Order> orders, const ProgramEnd& end) override;
  ProgramCall list() override { return asked("list", ""); }
  Result<std::vector<Listed>> listed(const ProgramEnd& end) override;
  bool buries() const override { return true; }
  ProgramCall end(std::span<const Ordered> machines) override;
  ProgramCall tell(std::span<const Ordered> machines) override;
  ProgramCall tail(const Ordered& machine) override;

 private:
  ProgramCall asked(const char* verb, const std::string& lines) const;

  ExecSpec spec_;
  MachineProgram machine_;
};

}  // namespace mayfly
